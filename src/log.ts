import { type Logger, pino } from 'pino';

/** The one logger. Fields are `module`, `node`, `build`, `digest`; a message is a sentence. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

const SECRETS = ['password', 'token', 'secret', 'privateKey', 'authorization', 'amqpUrl', 'databaseUrl'];
const LEVEL = 'warn';

/** Quiet unless something needs a look; `TALLY_LOG_LEVEL` says otherwise. Addresses lose their passwords wherever they stand. */
export function createLog(process: string, level = LEVEL, destination?: { write(line: string): void }): Logger {
  const options = {
    name: process,
    level,
    base: {},
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRETS.flatMap((key) => [key, `*.${key}`]), censor: '…' },
    hooks: { streamWrite: withoutPasswords },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/** amqp://user:password@host → amqp://user:…@host */
function withoutPasswords(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/[^\s:/@"]*):[^\s/@"]+@/gi, '$1:…@');
}

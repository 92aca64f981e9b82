import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openHome, openJournal, readBuilderConfig, startBuilder } from '../src/builder';
import { UsageError } from '../src/domain/errors';
import { keptSigningKey, openLink } from '../src/link';
import { createLog } from '../src/log';
import { createRegistryClient } from '../src/registry';
import { packageRoot } from '../src/servers/places';

/** The builder as a process. A second signal ends it at once; what it held is then delivered again. */

const STOP_TIMEOUT_MS = 20_000;

async function main(): Promise<void> {
  const config = readBuilderConfig(process.env);
  const log = createLog('builder', config.logLevel).child({ builder: config.name });
  const home = await openHome(config.home);
  const link = await openLink({
    url: config.amqpUrl,
    name: `builder ${config.name}`,
    onState: ({ isUp, reason }) => (isUp ? log.info('the broker is there') : log.warn({ reason }, 'the broker is away')),
    onHandlerError: (error, queue) => log.warn({ queue, error: String(error) }, 'a queue could not be read'),
  });
  const registry = createRegistryClient({ url: config.registryUrl });
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string };
  const key = keptSigningKey(home.directory);
  const builder = await startBuilder({ version, link, registry, home, journal: await openJournal(home.directory), key, config, log });
  log.info({ platforms: config.platforms, home: home.directory }, 'the builder takes requests');

  const signal = await new Promise<string>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => resolve(name));
  });
  log.info({ signal }, 'the builder ends');
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
  await builder.stop();
  await link.close();
  await home.release();
}

main().catch((error: unknown) => {
  if (error instanceof UsageError) process.stderr.write(`${error.message}\n`);
  else process.stderr.write(`the builder ended: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
});

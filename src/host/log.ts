import type { Logger } from 'pino';

/** What a host says to whoever runs it. */
export type HostLog = Pick<Logger, 'info' | 'warn' | 'error'>;

import type { Db } from './db';
/** Bounds what only grows: reports, declarations, log lines, dead letters. For an hourly pass. */
export declare function prune(db: Db): Promise<void>;

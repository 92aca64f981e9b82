import type { Times } from '../domain/times';
import type { Db } from './db';

export interface DueSource {
  readonly module: string;
  readonly repository: string;
  readonly ref: string;
}
export type Reading =
  | { readonly kind: 'head'; readonly commit: string }
  /** `absent`: git answered and the ref is not there (or the repository is empty). */
  | { readonly kind: 'unreadable' | 'absent'; readonly reason: string };

/** Takes the sources that are due, oldest first, and leases them: nobody else gets them within `leaseMs`. */
export declare function dueRepositories(db: Db, limit: number, now: Date, leaseMs?: number): Promise<DueSource[]>;
/** Writes only what changed; settles what is effective. */
export declare function recordReadings(db: Db, readings: ReadonlyArray<{ readonly module: string; readonly reading: Reading }>, now: Date, times: Times): Promise<void>;
export declare function recordReading(db: Db, module: string, reading: Reading, now: Date, times: Times): Promise<void>;
/** An event promised a change: these are due now, and again every two seconds until the head moves or the time is over. */
export declare function expectChange(db: Db, modules: readonly string[], now: Date, forMs?: number): Promise<void>;

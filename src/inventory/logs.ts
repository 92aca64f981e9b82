import type { LogLines } from '../schema/messages';
import type { Db } from './db';

export interface LogCursor {
  readonly attempt: number;
  /** The number of the next line. */
  readonly number: number;
}
export interface LogPart {
  readonly request: string;
  readonly module: string;
  readonly kind: 'inspect' | 'build';
  readonly commit: string;
  readonly state: 'requested' | 'published' | 'taken' | 'answered' | 'cancelled';
  readonly verdict: string | null;
  /** Digest of the whole log in the registry, once it was answered. */
  readonly log: string | null;
  readonly lines: ReadonlyArray<{ readonly attempt: number; readonly number: number; readonly text: string }>;
  readonly next: LogCursor;
}
/** Lines of requests that have ended are dropped: the registry has the whole log. */
export declare function appendLog(db: Db, messages: readonly LogLines[]): Promise<void>;
/** At most 1,000 lines from the cursor on (null: from the first kept one); null when there is no such request. */
export declare function readLog(db: Db, requestId: string, from: LogCursor | null): Promise<LogPart | null>;
/** The newest request of a module, a running one first, of the given commit (its start) or id where one is given. */
export declare function latestRequest(db: Db, module: string, ref: string | null): Promise<string | null>;

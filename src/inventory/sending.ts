import type { Declaration } from '../schema/declaration';
import type { Times } from '../domain/times';
import type { Db } from './db';

export type Prepared =
  | { readonly kind: 'send'; readonly declaration: Declaration }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'notWorkedOut'; readonly reason: string }
  /** Somebody else is at it, or there is no such node. */
  | { readonly kind: 'busy' };
export declare function nodesToSend(db: Db, limit: number, now: Date): Promise<string[]>;
/** Under the node's lock: derive, take a fresh sequence, write the declaration down. The caller publishes what it gets, then recordSent or recordSendFailure. `digest` is the canonical one. */
export declare function prepareSend(db: Db, node: string, digest: (value: unknown) => string, now: Date): Promise<Prepared>;
/** Only after the broker's confirm. */
export declare function recordSent(db: Db, node: string, sequence: number, digest: string, now: Date): Promise<void>;
export declare function recordSendFailure(db: Db, node: string, reason: string, now: Date, times: Times): Promise<void>;

import type { Db } from './db';
export type IntentVerb = 'declare' | 'rebuild' | 'hold' | 'release' | 'rollback' | 'cancel';
export interface AskedIntent {
  /** Asking twice with the same id is asking once. */
  readonly id: string;
  readonly verb: IntentVerb;
  readonly module: string;
  readonly node: string | null;
  readonly buildId: string | null;
  readonly who: string;
  readonly why: string;
}
/** Written down and carried out in one transaction; one line of answer. A refusal is a UsageError. */
export declare function recordIntent(db: Db, asked: AskedIntent): Promise<string>;
/** Send these nodes again (`again`: also what they already hold); null: all that are behind. Gives the names. */
export declare function pushNodes(db: Db, asked: { readonly nodes: readonly string[] | null; readonly again: boolean; readonly who: string; readonly why: string }): Promise<string[]>;

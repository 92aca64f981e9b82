import type { Db } from './db';
/** Kept bounded: the newest thousand. */
export declare function recordDeadLetter(db: Db, letter: { readonly queue: string; readonly reason: string; readonly body: string }): Promise<void>;

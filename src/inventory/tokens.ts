import type { Db } from './db';
/** The token's text: shown once, only its hash is kept. A name that has one gets a new one. */
export declare function addToken(db: Db, name: string): Promise<string>;
/** Whose token this is; null when it is nobody's. */
export declare function whoIs(db: Db, token: string): Promise<string | null>;

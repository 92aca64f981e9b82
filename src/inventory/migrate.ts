/** Brings the database at the address to the newest numbered migration; safe to run from several processes at once. Gives the names that were applied. */
export declare function migrate(url: string): Promise<string[]>;

/** A connection pool, or one transaction of it: every function of this room takes it first. */
export interface Db {
  /** SQL is a constant text; values travel apart from it. */
  query<Row extends object = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /** All or nothing. Runs `work` again after a deadlock, a serialization failure or a lost connection, so `work` does nothing but SQL. */
  transaction<T>(work: (db: Db) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}
export declare function openInventory(url: string, options?: { readonly max?: number }): Db;

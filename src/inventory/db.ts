import { Pool, type PoolClient, types } from 'pg';
import { EnvironmentError } from '../domain/errors';

/** A connection pool, or one transaction of it: every function of this room takes it first. */
export interface Db {
  /** SQL is a constant text; values travel apart from it. */
  query<Row extends object = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /** All or nothing. Runs `work` again after a deadlock, a serialization failure or a lost connection, so `work` does nothing but SQL. */
  transaction<T>(work: (db: Db) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const ATTEMPTS = 5;
const INT8 = 20;

/** Sequences and versions stay far below 2^53. */
const parsers = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
};

/** Connects when first asked; a database that is away is an EnvironmentError of the calls. */
export function openInventory(url: string, { max = 10 }: { readonly max?: number } = {}): Db {
  const pool = new Pool({
    connectionString: url,
    max,
    types: parsers,
    application_name: 'tally',
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 30_000,
    query_timeout: 35_000,
    lock_timeout: 15_000,
    idle_in_transaction_session_timeout: 60_000,
    // The statements are many and short: compiling one costs more than running it.
    options: '-c jit=off',
  });
  // A connection that breaks between two queries fails the next one; without listeners it would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const connect = (): Promise<PoolClient> => pool.connect();

  return {
    query: (sql, values = []) => again(connect, 'rolled back', (client) => run(client, sql, values)),
    transaction: (work) =>
      again(connect, 'rolled back or lost', async (client) => {
        await client.query('begin');
        try {
          const result = await work(within(client));
          await client.query('commit');
          return result;
        } catch (error) {
          await client.query('rollback').catch(() => undefined);
          throw error;
        }
      }),
    close: () => pool.end(),
  };
}

/** A transaction inside a transaction is part of it. */
function within(client: PoolClient): Db {
  const db: Db = {
    query: (sql, values = []) => run(client, sql, values),
    transaction: (work) => work(db),
    close: async () => undefined,
  };
  return db;
}

const names = new Map<string, string>();

/** Each text is prepared once a connection: planning the long ones costs more than running them. */
async function run<Row extends object>(client: PoolClient, text: string, values: readonly unknown[]): Promise<Row[]> {
  const name = names.get(text) ?? `tally-${names.size}`;
  names.set(text, name);
  return (await client.query<Row>({ name, text, values: [...values] })).rows;
}

async function again<T>(
  connect: () => Promise<PoolClient>,
  after: 'rolled back' | 'rolled back or lost',
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    let client: PoolClient | null = null;
    try {
      client = await connect();
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      const trouble = troubleOf(error);
      client?.release(trouble === 'lost');
      const isRepeatable = trouble === 'rolled back' || (trouble === 'lost' && (client === null || after === 'rolled back or lost'));
      if (isRepeatable && attempt < ATTEMPTS) {
        await new Promise((resolve) => setTimeout(resolve, 20 * 2 ** attempt * (0.5 + Math.random())));
        continue;
      }
      if (trouble === null) throw error;
      throw new EnvironmentError(`the store did not answer: ${partsOf(error).message}`, { cause: error });
    }
  }
}

/** What went wrong with the store itself; null: a defect or a violated constraint. */
function troubleOf(error: unknown): 'rolled back' | 'lost' | null {
  const { code, message } = partsOf(error);
  if (code === '40001' || code === '40P01' || code === '55P03') return 'rolled back';
  // Connection exceptions, insufficient resources, an operator's intervention, and what the socket says.
  if (/^(08|53|57)...$|^E[A-Z]+$/.test(code)) return 'lost';
  return /^(Connection terminated|timeout exceeded|Query read timeout|Client has encountered a connection error)/.test(message) ? 'lost' : null;
}

/** An error of Node itself need not be an instance of this realm's Error. */
function partsOf(error: unknown): { code: string; message: string } {
  const { code, message } = typeof error === 'object' && error !== null ? (error as { code?: unknown; message?: unknown }) : {};
  return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' && message !== '' ? message : String(code ?? error) };
}

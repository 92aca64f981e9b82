import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { EnvironmentError } from '../domain/errors';

/** One number for this purpose in the whole database. */
const LOCK = 7_254_821;

/** Brings the database at the address to the newest numbered migration; safe to run from several processes at once. Gives the names that were applied. */
export async function migrate(url: string): Promise<string[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 120_000, application_name: 'tally-migrate' });
  client.on('error', () => undefined);
  await client.connect().catch((error: Error) => {
    throw new EnvironmentError(`the store does not answer: ${error.message}`, { cause: error });
  });
  try {
    // Held until the connection ends: whoever comes second finds everything applied.
    await client.query('select pg_advisory_lock($1)', [LOCK]);
    await client.query('create table if not exists migration (name text primary key, applied_at timestamptz not null default now())');
    const { rows } = await client.query<{ name: string }>('select name from migration');
    const applied = new Set(rows.map((row) => row.name));
    const folder = migrationsFolder();
    const pending = readdirSync(folder)
      .filter((file) => /^\d{4}_.+\.sql$/.test(file) && !applied.has(file))
      .sort();
    for (const name of pending) {
      await client.query('begin');
      await client.query(readFileSync(join(folder, name), 'utf8'));
      await client.query('insert into migration (name) values ($1)', [name]);
      await client.query('commit');
    }
    return pending;
  } finally {
    await client.end();
  }
}

/** The compiler does not copy SQL: it is read where it is written, from the sources and from dist alike. */
export function migrationsFolder(): string {
  let root = __dirname;
  while (!existsSync(join(root, 'package.json')) && dirname(root) !== root) root = dirname(root);
  return join(root, 'src', 'inventory', 'migrations');
}

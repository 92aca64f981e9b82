import { readdirSync } from 'node:fs';
import type { Db } from './db';
import { migrationsFolder } from './migrate';

/** The newest migration that the database has, and the newest that this program brings. */
export async function schemaState(db: Db): Promise<{ applied: string | null; known: string | null }> {
  const [row] = await db.query<{ name: string }>('select name from migration order by name desc limit 1');
  const known = readdirSync(migrationsFolder())
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .at(-1);
  return { applied: row?.name ?? null, known: known ?? null };
}

/** Milliseconds by which the store's clock is ahead of this one, less half the time that asking took. */
export async function storeClock(db: Db): Promise<number> {
  const began = Date.now();
  const [row] = await db.query<{ ms: number }>('select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms');
  return row === undefined ? 0 : row.ms - (began + Date.now()) / 2;
}

/** Platforms that manifests of tracked heads ask for, and how many modules do. */
export async function neededPlatforms(db: Db): Promise<Array<{ platform: string; modules: number }>> {
  return await db.query(`
    select coalesce(i.manifest -> 'build' ->> 'platform', 'linux-amd64') as platform, count(*)::int as modules
    from module m join inspection i on i.module = m.name and i.commit = m.head_commit and i.outcome = 'valid'
    group by 1 order by 2 desc`);
}

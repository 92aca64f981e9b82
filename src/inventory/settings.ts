import type { DeclarePolicy } from '../domain/facts';
import type { Db } from './db';

export interface Mesh {
  readonly name: string;
  readonly declareDefault: DeclarePolicy;
}

export async function getMesh(db: Db): Promise<Mesh> {
  const [row] = await db.query<Mesh>(`
    select coalesce((select value #>> '{}' from setting where key = 'mesh'), 'home') as name,
      coalesce((select value #>> '{}' from setting where key = 'declareDefault'), 'ask') as "declareDefault"`);
  return row ?? { name: 'home', declareDefault: 'ask' };
}

export async function setSetting(db: Db, key: 'mesh' | 'declareDefault', value: string): Promise<void> {
  await db.query(
    `insert into setting (key, value) values ($1, to_jsonb($2::text))
     on conflict (key) do update set value = excluded.value where setting.value <> excluded.value`,
    [key, value],
  );
}

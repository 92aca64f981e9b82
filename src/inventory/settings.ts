import { ulid } from 'ulid';
import type { DeclarePolicy, Iso } from '../domain/facts';
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

/** Who last said what modules that are silent about it do; null: nobody has. */
export async function whoSaidDefault(db: Db): Promise<{ readonly who: string; readonly why: string; readonly at: Iso } | null> {
  const [row] = await db.query<{ who: string; why: string; at: Iso }>(
    `select who, why, iso(at) as at from intent where module is null and verb = 'default' order by intent.at desc limit 1`,
  );
  return row ?? null;
}

/** The setting and the intent of whoever said so. Gives what was so before. */
export async function sayDefault(
  db: Db,
  policy: DeclarePolicy,
  { who, why }: { readonly who: string; readonly why: string },
): Promise<DeclarePolicy> {
  return await db.transaction(async (tx) => {
    const { declareDefault } = await getMesh(tx);
    await setSetting(tx, 'declareDefault', policy);
    await tx.query(`insert into intent (id, verb, who, why, says) values ($1, 'default', $2, $3, $4)`, [ulid(), who, why, policy]);
    return declareDefault;
  });
}

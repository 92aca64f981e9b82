import { ulid } from 'ulid';
import { UsageError } from '../domain/errors';
import type { Comparison, Facts } from '../domain/facts';
import type { Times } from '../domain/times';
import type { Db } from './db';
import { FACTS_OF_MANY, FACTS_OF_ONE } from './facts';

export interface ModuleRef {
  readonly name: string;
  readonly repository: string;
}

export interface ChangedModule extends ModuleRef {
  readonly version: number;
}

/** UsageError when the name is taken. */
export async function addModule(db: Db, module: { readonly name: string; readonly repository: string; readonly ref: string }): Promise<void> {
  const added = await db.query('insert into module (name, repository, ref) values ($1, $2, $3) on conflict do nothing returning name', [
    module.name,
    module.repository,
    module.ref,
  ]);
  if (added.length === 0) throw new UsageError(`module ${module.name} exists already: tally module show ${module.name}`);
}

/** With everything that is known of it; its nodes are told without it. UsageError when there is none. */
export async function removeModule(db: Db, name: string, { who, why }: { readonly who: string; readonly why: string }): Promise<void> {
  await db.transaction(async (tx) => {
    const removed = await tx.query('delete from module where name = $1 returning name', [name]);
    if (removed.length === 0) throw new UsageError(`there is no module ${name}: tally module list`);
    await tx.query(`insert into intent (id, verb, module, who, why) values ($1, 'module remove', $2, $3, $4)`, [ulid(), name, who, why]);
  });
}

export async function listModules(db: Db): Promise<Array<ModuleRef & { readonly ref: string; readonly hasWebhook: boolean }>> {
  return db.query('select name, repository, ref, webhook_secret is not null as "hasWebhook" from module order by name');
}

/** One statement, so one snapshot; null when there is no such module. */
export async function readFacts(db: Db, module: string, now: Date, times: Times): Promise<Facts | null> {
  const [row] = await db.query<{ facts: Facts }>(FACTS_OF_ONE, [module, now, times.hostAway]);
  return row?.facts ?? null;
}

/** The same for many modules at once, for the full pass. */
export async function readManyFacts(db: Db, modules: readonly string[], now: Date, times: Times): Promise<Facts[]> {
  const rows = await db.query<{ facts: Facts }>(FACTS_OF_MANY, [modules, now, times.hostAway]);
  return rows.map((row) => row.facts);
}

/** Keeps what a comparison found. One of older facts than the last recorded is dropped. */
export async function recordComparison(db: Db, comparison: Comparison, now: Date = new Date()): Promise<void> {
  await db.query(
    `update module set compared_version = $2, compared_at = $3, due_at = $4, situation = $5, verdict = $6, next = $7, line = $8, reason = $9,
       since = $10, needs_person = $11, in_step = $12, counts = $13,
       changed_at = case when facts_version = $2 then changed_at else $3 end
     where name = $1 and compared_version <= $2`,
    [
      comparison.module,
      comparison.version,
      now,
      comparison.until,
      comparison.situation,
      comparison.verdict,
      comparison.next.kind,
      comparison.line,
      comparison.reason,
      comparison.since,
      comparison.needsPerson,
      comparison.inStep,
      JSON.stringify(comparison.counts),
    ],
  );
}

/** Modules whose facts moved since they were compared and since they were nudged: for the pass a second. */
export async function changedModules(db: Db, limit: number): Promise<ChangedModule[]> {
  return db.query(
    'select name, repository, facts_version as version from module where facts_version <> compared_version and facts_version <> nudged_version order by name limit $1',
    [limit],
  );
}

export async function markNudged(db: Db, modules: ReadonlyArray<{ readonly name: string; readonly version: number }>): Promise<void> {
  await db.query(
    `update module m set nudged_version = n.version from unnest($1::text[], $2::bigint[]) n (name, version)
     where m.name = n.name and m.nudged_version < n.version`,
    [modules.map((module) => module.name), modules.map((module) => module.version)],
  );
}

/** Modules whose facts are not the ones last compared, nudged or not, or whose time is due: for the sweep. */
export async function sweepModules(db: Db, limit: number, now: Date): Promise<ChangedModule[]> {
  return db.query(
    `select name, repository, facts_version as version from module where facts_version <> compared_version
     union
     select name, repository, facts_version from module where due_at <= $2
     order by name limit $1`,
    [limit, now],
  );
}

export async function countChanged(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>('select count(*) as count from module where facts_version <> compared_version');
  return row?.count ?? 0;
}

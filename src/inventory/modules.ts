import { ulid } from 'ulid';
import { UsageError } from '../domain/errors';
import type { Comparison, Facts } from '../domain/facts';
import type { Times } from '../domain/times';
import type { Db } from './db';
import { FACTS_OF_MANY, FACTS_OF_ONE } from './facts';
import { lockGraph } from './graph';
import { providersOf, refuseIfNeeded } from './placing';
import { lockProvisioning, refreshProviders } from './provisioning';

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
    await lockGraph(tx);
    await lockProvisioning(tx);
    await refuseIfNeeded(tx, { module: name, node: null });
    const providers = await providersOf(tx, { module: name, node: null });
    const removed = await tx.query('delete from module where name = $1 returning name', [name]);
    if (removed.length === 0) throw new UsageError(`there is no module ${name}: tally module list`);
    await refreshProviders(tx, providers);
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
  await recordComparisons(db, [comparison], now);
}

export async function recordComparisons(db: Db, comparisons: readonly Comparison[], now: Date): Promise<void> {
  await db.query(
    `with found as (
       select * from jsonb_to_recordset($1::jsonb) as c (module text, version bigint, next jsonb, situation text, verdict text, line text, reason text,
         since timestamptz, until timestamptz, "needsPerson" boolean, "inStep" boolean, counts jsonb, unread text)
     ), locked as (
       select m.name from module m join found c on m.name = c.module and m.compared_version <= c.version order by m.name for no key update of m
     )
     update module m set compared_version = c.version, compared_at = $2, due_at = c.until, situation = c.situation, verdict = c.verdict,
       next = c.next ->> 'kind', line = c.line, reason = c.reason, since = c.since, needs_person = c."needsPerson", in_step = c."inStep", counts = c.counts,
       unread = c.unread,
       changed_at = case when facts_version = c.version then changed_at else $2 end
     from found c join locked l on l.name = c.module where m.name = l.name and m.compared_version <= c.version`,
    [JSON.stringify(comparisons), now],
  );
}

/** What the last comparison decided; nulls before the first. */
export interface Decided {
  readonly situation: string | null;
  readonly verdict: string | null;
  readonly next: string | null;
  readonly stuck: number;
}

export interface OwedModule extends ChangedModule {
  readonly decided: Decided;
}

/** How long a module whose facts moved is left alone where telling it at once would be for nothing. */
export interface Grace {
  /** One that waits for an answer. */
  readonly answerMs: number;
  /** One that was answered in this time: the answer itself wakes its workflow. */
  readonly answeredMs: number;
  /** A stale one whose head is inspected, and of which an input of its own still settles: it can only wait, and every answer below it is news of that kind. */
  readonly waitMs: number;
}

/** What waits for code to be read is told by no row that moves: it is looked at from here, and owed another comparison where its line says what is so no more; at most so many at once, for all may wait for the same module. */
export async function lookAtUnreadAgain(db: Db, most: number): Promise<void> {
  await db.query('select look_at_unread_again($1)', [most]);
}

/** Modules whose facts moved since they were compared and since they were nudged: for the pass a second, those that have waited longest first. */
export async function changedModules(db: Db, limit: number, now: Date, { answerMs, answeredMs, waitMs }: Grace): Promise<OwedModule[]> {
  return db.query(
    `select name, repository, facts_version as version,
       jsonb_build_object('situation', situation, 'verdict', verdict, 'next', next, 'stuck', coalesce((counts ->> 'stuck')::int, 0)) as decided
     from module
     where facts_version <> compared_version and facts_version <> nudged_version
       and coalesce(changed_at <= $2::timestamptz - interval '1 millisecond' * case
         when next in ('inspect', 'build') then case
           when (select r.state = 'answered' and r.answered_at > $2::timestamptz - interval '1 millisecond' * $4::int from request r
             where r.module = module.name and r.kind = module.next order by r.requested_at desc, r.id desc limit 1) then $4::int
           else $3::int end
         when stale_since is not null and edges_commit = head_commit and exists (
           select from build_edge e join module i on i.name = e.input where e.module = module.name and not e.is_test and i.is_settling) then $5::int
         end, true)
     order by changed_at, name limit $1`,
    [limit, now, answerMs, answeredMs, waitMs],
  );
}

export async function markNudged(db: Db, modules: ReadonlyArray<{ readonly name: string; readonly version: number }>): Promise<void> {
  await db.query(
    `with told as (
       select m.name, n.version from unnest($1::text[], $2::bigint[]) n (name, version) join module m on m.name = n.name and m.nudged_version < n.version
       order by m.name for no key update of m
     )
     update module m set nudged_version = t.version from told t where m.name = t.name and m.nudged_version < t.version`,
    [modules.map((module) => module.name), modules.map((module) => module.version)],
  );
}

/** Modules whose facts are not the ones last compared since `owedSince`, nudged or not, or whose time is due, those that have waited longest first: for the sweep. */
export async function sweepModules(db: Db, limit: number, now: Date, owedSince: Date): Promise<ChangedModule[]> {
  return db.query(
    `select name, repository, version from (
       (select name, repository, facts_version as version, changed_at as since from module where facts_version <> compared_version and changed_at <= $3
        order by changed_at, name limit $1)
       union all
       (select name, repository, facts_version, due_at from module where due_at <= $2 and not (facts_version <> compared_version and changed_at <= $3)
        order by due_at, name limit $1)
     ) owed order by since, name limit $1`,
    [limit, now, owedSince],
  );
}

export async function countChanged(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>('select count(*) as count from module where facts_version <> compared_version');
  return row?.count ?? 0;
}

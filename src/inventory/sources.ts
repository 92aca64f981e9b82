import type { Times } from '../domain/times';
import type { Db } from './db';
import { lockGraph } from './graph';
import { toJson } from './text';

export interface DueSource {
  readonly module: string;
  readonly repository: string;
  readonly ref: string;
}

export type Reading =
  | { readonly kind: 'head'; readonly commit: string }
  /** `absent`: git answered and the ref is not there (or the repository is empty). */
  | { readonly kind: 'unreadable' | 'absent'; readonly reason: string };

export interface ModuleReading {
  readonly module: string;
  readonly reading: Reading;
  /** Of what git was asked, and when: an answer that took long does not replace one to a later question, nor one about another repository. */
  readonly asked?: { readonly repository: string; readonly ref: string; readonly at: Date };
}

/** After an event, while git still gives the old commit. */
const EXPECTING_MS = 2_000;

/** Of a process that dies while it asks, the sources are due again after this. */
export const LEASE_MS = 30_000;

/** Takes the sources that are due, oldest first, and leases them: nobody else gets them until the lease ends, which whoever still asks renews. */
export async function dueRepositories(db: Db, limit: number, now: Date): Promise<DueSource[]> {
  return db.query(
    `with due as (
       select name from module where next_read_at <= $2 order by next_read_at limit $1 for no key update skip locked
     )
     update module m set next_read_at = $2::timestamptz + $3 * interval '1 millisecond'
     from due where m.name = due.name
     returning m.name as module, m.repository, m.ref`,
    [limit, now, LEASE_MS],
  );
}

/** Those that run out soon and were not read since they were leased: when one of those is due again is not ours to say. */
export async function renewLeases(db: Db, leases: ReadonlyArray<{ readonly module: string; readonly at: Date }>, now: Date): Promise<void> {
  await db.query(
    `update module m set next_read_at = $2::timestamptz + $3 * interval '1 millisecond'
     from (
       select m.name from unnest($1::text[], $4::timestamptz[]) l (name, at) join module m on m.name = l.name
       where coalesce(m.read_at < l.at, true) and m.next_read_at > $2 and m.next_read_at < $2::timestamptz + $3 * interval '1 millisecond' * 2 / 3
       order by m.name for no key update of m
     ) asked where m.name = asked.name`,
    [leases.map((lease) => lease.module), now, LEASE_MS, leases.map((lease) => lease.at)],
  );
}

/** What git said of many modules at once. Only what changed bumps a module; the graph is settled with it. */
export async function recordReadings(db: Db, readings: readonly ModuleReading[], now: Date, times: Times): Promise<void> {
  if (readings.length === 0) return;
  await db.transaction(async (tx) => {
    const rows = toJson(newestOf(readings).map(toRow));
    const moving = await tx.query(
      `select from jsonb_to_recordset($1::jsonb) r (module text, commit text) join module m on m.name = r.module where r.commit is distinct from m.head_commit and r.commit is not null limit 1`,
      [rows],
    );
    if (moving.length > 0) await lockGraph(tx);
    await tx.query(
      `with said as (
         select m.name, r.commit, r.kind, r.reason, coalesce(r."askedAt", $2) as asked_at, r.commit is distinct from m.head_commit and r.commit is not null as is_moved
         from jsonb_to_recordset($1::jsonb) r (module text, commit text, kind text, reason text, repository text, ref text, "askedAt" timestamptz)
         join module m on m.name = r.module and coalesce(r.repository, m.repository) = m.repository and coalesce(r.ref, m.ref) = m.ref
           and coalesce(r."askedAt" >= m.read_at, true)
         order by m.name for no key update of m
       )
       update module m set
         head_commit = coalesce(s.commit, m.head_commit),
         head_since = case when s.is_moved then $2 else m.head_since end,
         trouble_kind = s.kind,
         trouble_reason = s.reason,
         trouble_since = case when s.kind is null then null when s.kind = m.trouble_kind then m.trouble_since else $2 end,
         read_at = s.asked_at,
         nudged_until = case when s.is_moved or m.nudged_until <= $2 then null else m.nudged_until end,
         -- Spread a little, so that ten thousand are not due in one moment for ever.
         next_read_at = $2::timestamptz + interval '1 millisecond' * case when not s.is_moved and m.nudged_until > $2 then $4 else $3 * (0.9 + 0.2 * random()) end
       from said s where m.name = s.name`,
      [rows, now, times.readRefs, EXPECTING_MS],
    );
  });
}

export async function recordReading(db: Db, module: string, reading: Reading, now: Date, times: Times): Promise<void> {
  await recordReadings(db, [{ module, reading }], now, times);
}

/** An event promised a change: these are due now, and again every two seconds until the head moves or the time is over. */
export async function expectChange(db: Db, modules: readonly string[], now: Date, forMs = 60_000): Promise<void> {
  await db.query(
    `update module set nudged_until = $2::timestamptz + $3 * interval '1 millisecond', next_read_at = least(next_read_at, $2) where name = any ($1)`,
    [modules, now, forMs],
  );
}

/** Of two about the same module the one that was asked for last, else the last. */
function newestOf(readings: readonly ModuleReading[]): ModuleReading[] {
  const newest = new Map<string, ModuleReading>();
  for (const reading of readings) {
    const other = newest.get(reading.module);
    if (other?.asked === undefined || reading.asked === undefined || other.asked.at <= reading.asked.at) newest.set(reading.module, reading);
  }
  return [...newest.values()];
}

function toRow({ module, reading, asked }: ModuleReading): object {
  const question = asked === undefined ? {} : { repository: asked.repository, ref: asked.ref, askedAt: asked.at };
  return reading.kind === 'head'
    ? { module, commit: reading.commit, ...question }
    : { module, kind: reading.kind, reason: reading.reason, ...question };
}

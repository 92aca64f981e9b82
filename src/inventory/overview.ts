/** What status, board and metrics read: set-based, one statement a family. Times are ISO 8601 in UTC. */
import type { Iso, Next, PlacementCounts, Situation, Verdict } from '../domain/facts';
import type { Times } from '../domain/times';
import type { Db } from './db';

export interface ModuleStatus {
  readonly module: string;
  readonly repository: string;
  readonly ref: string;
  readonly head: string | null;
  readonly situation: Situation | null;
  readonly verdict: Verdict;
  readonly next: Next['kind'] | null;
  readonly line: string;
  readonly reason: string;
  readonly since: Iso | null;
  readonly comparedAt: Iso | null;
  readonly needsPerson: boolean;
  readonly inStep: boolean;
  readonly isHeld: boolean;
  readonly hasWebhook: boolean;
  readonly counts: PlacementCounts;
}
export interface StuckStatus {
  readonly module: string;
  readonly node: string;
  readonly resources: readonly string[];
  readonly count: number;
  readonly since: Iso;
  readonly message: string;
}
export interface NodeStatus {
  readonly node: string;
  readonly site: string;
  readonly presence: 'never seen' | 'up' | 'away';
  readonly lastBeatAt: Iso | null;
  /** What was last sent against what would be sent now. */
  readonly sending: 'up to date' | 'out of date' | 'never told' | 'not worked out' | 'nothing to tell';
  readonly notWorkedOut: { readonly reason: string; readonly since: Iso } | null;
  readonly sendTrouble: { readonly reason: string; readonly since: Iso } | null;
  readonly refused: { readonly reason: string; readonly since: Iso } | null;
  /** Another public key than the one that was taken first. */
  readonly keyRefused: string | null;
  readonly placements: number;
  readonly applied: number;
}
export interface BuilderStatus {
  readonly builder: string;
  readonly platforms: readonly string[];
  readonly presence: 'up' | 'away';
  readonly lastBeatAt: Iso;
  readonly busy: ReadonlyArray<{ readonly request: string; readonly module: string | null; readonly step: string; readonly since: Iso }>;
}
export interface MeshHealth {
  /** The oldest comparison of a module whose facts have moved since; null: none is owed. */
  readonly oldestOwedSince: Iso | null;
  readonly oldestOwedModule: string | null;
  readonly uncompared: number;
  /** The source that has been due to be read for longest, and that nobody reads; null: none is due. */
  readonly oldestDueSince: Iso | null;
  readonly oldestDueModule: string | null;
  readonly deadLetters: number;
  readonly newestDeadLetter: { readonly queue: string; readonly reason: string; readonly at: Iso } | null;
}
/** All modules, or those that are named. */
export async function moduleStatuses(db: Db, modules: readonly string[] | null = null): Promise<ModuleStatus[]> {
  return db.query(
    `select name as module, repository, ref, head_commit as head, situation, coalesce(verdict, 'outstanding') as verdict, next,
       coalesce(line, 'not compared yet') as line, coalesce(reason, 'not compared yet') as reason, iso(since) as since, iso(compared_at) as "comparedAt",
       needs_person as "needsPerson", in_step as "inStep", held_at is not null as "isHeld", webhook_secret is not null as "hasWebhook",
       coalesce(counts, '{"placements":0,"declared":0,"applied":0,"outstanding":0,"stuck":0}') as counts
     from module where $1::text[] is null or name = any ($1) order by name`,
    [modules],
  );
}

/** Placements that failed three times on the same resources, or for an hour. */
export async function stuckStatuses(db: Db, now: Date, times: Times): Promise<StuckStatus[]> {
  return db.query(
    `select module, node, failing_resources as resources, failing_count as count, iso(failing_since) as since, failing_message as message
     from placement
     where failing_resources is not null and (failing_count >= 3 or failing_since <= $1::timestamptz - $2 * interval '1 millisecond')
     order by module, node`,
    [now, times.stuckAfter],
  );
}

/** All nodes, or those that are named. */
export async function nodeStatuses(db: Db, now: Date, times: Times, nodes: readonly string[] | null = null): Promise<NodeStatus[]> {
  return db.query(
    `select n.name as node, n.site,
       case when n.last_beat_at is null then 'never seen'
         when n.last_beat_at + $2 * interval '1 millisecond' <= $1::timestamptz then 'away' else 'up' end as presence,
       iso(n.last_beat_at) as "lastBeatAt",
       case when n.not_worked_out is not null then 'not worked out'
         when n.sent_sequence is null then case when n.derived_digest is null and held.declared = 0 then 'nothing to tell' else 'never told' end
         when n.version <> n.derived_version or n.derived_digest is distinct from n.sent_digest then 'out of date'
         else 'up to date' end as sending,
       case when n.not_worked_out is not null then jsonb_build_object('reason', n.not_worked_out, 'since', iso(n.not_worked_out_since)) end as "notWorkedOut",
       case when n.send_trouble is not null then jsonb_build_object('reason', n.send_trouble, 'since', iso(n.send_trouble_since)) end as "sendTrouble",
       case when n.refused_reason is not null then jsonb_build_object('reason', n.refused_reason, 'since', iso(n.refused_since)) end as refused,
       n.key_refused as "keyRefused", held.placements, held.applied
     from node n
     cross join lateral (
       select count(*) as placements, count(*) filter (where p.is_applied) as applied, count(p.build_id) as declared from placement p where p.node = n.name
     ) held
     where $3::text[] is null or n.name = any ($3) order by n.name`,
    [now, times.hostAway, nodes],
  );
}

export async function builderStatuses(db: Db, now: Date, times: Times): Promise<BuilderStatus[]> {
  return db.query(
    `select b.name as builder, b.platforms, case when b.last_beat_at + $2 * interval '1 millisecond' <= $1::timestamptz then 'away' else 'up' end as presence,
       iso(b.last_beat_at) as "lastBeatAt",
       (select coalesce(jsonb_agg(jsonb_build_object('request', w.request, 'module', r.module, 'step', w.step, 'since', w.since)), '[]')
        from jsonb_to_recordset(b.busy) w (request text, step text, since text) left join request r on r.id = w.request) as busy
     from builder b order by b.name`,
    [now, times.builderLost],
  );
}

export async function meshHealth(db: Db): Promise<MeshHealth> {
  const [row] = await db.query<MeshHealth>(
    `select iso(owed.changed_at) as "oldestOwedSince", owed.name as "oldestOwedModule",
       (select count(*) from module where facts_version <> compared_version) as uncompared,
       iso(due.next_read_at) as "oldestDueSince", due.name as "oldestDueModule",
       (select count(*) from dead_letter) as "deadLetters",
       (select jsonb_build_object('queue', queue, 'reason', reason, 'at', iso(at)) from dead_letter order by id desc limit 1) as "newestDeadLetter"
     from (select 1) one
     left join lateral (select name, changed_at from module where facts_version <> compared_version order by changed_at limit 1) owed on true
     left join lateral (select name, next_read_at from module where next_read_at <= now() order by next_read_at limit 1) due on true`,
  );
  return (
    row ?? {
      oldestOwedSince: null,
      oldestOwedModule: null,
      uncompared: 0,
      oldestDueSince: null,
      oldestDueModule: null,
      deadLetters: 0,
      newestDeadLetter: null,
    }
  );
}

/** What `plan` needs beyond the rows of the modules. */
export interface PlanRow {
  readonly module: string;
  readonly next: Next['kind'];
  /** The head for what makes something, the effective build's for what declares it. */
  readonly commit: string | null;
  readonly reason: string;
  readonly needsPerson: boolean;
  /** Nodes whose placement does not name the effective build. */
  readonly undeclared: readonly string[];
  /** Nodes that have not applied what is declared. */
  readonly outstanding: readonly string[];
}

export interface StandingRow {
  readonly module: string;
  readonly situation: Situation;
}

/** Modules that are not in step though nothing is next for them, by name. */
export async function standingRows(db: Db): Promise<StandingRow[]> {
  return db.query(`select name as module, situation from module where next = 'nothing' and not in_step order by name`);
}

/** Modules whose next is not nothing, by name. */
export async function planRows(db: Db): Promise<PlanRow[]> {
  return db.query(
    `select m.name as module, m.next, case when m.next in ('declare', 'ask', 'track') then e.commit else m.head_commit end as commit, coalesce(m.reason, '') as reason, m.needs_person as "needsPerson",
       array(select p.node from placement p where p.module = m.name and m.effective_build is not null and p.build_id is distinct from m.effective_build
         and p.blocked_build is distinct from m.effective_build order by p.node) as undeclared,
       array(select p.node from placement p where p.module = m.name and p.build_id is not null and not p.is_applied order by p.node) as outstanding
     from module m left join build e on e.id = m.effective_build
     where m.next <> 'nothing' order by m.name`,
  );
}

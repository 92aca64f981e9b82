/** Everything about one module or one node, for `show`, `why` and the board. */
import type { DeclarePolicy, Iso, Verdict } from '../domain/facts';
import type { Db } from './db';

export interface PlacementDetail {
  readonly module: string;
  readonly node: string;
  readonly declared: { readonly build: string; readonly commit: string } | null;
  readonly applied: { readonly build: string; readonly commit: string | null; readonly at: Iso | null } | null;
  readonly isApplied: boolean;
  readonly outstandingSince: Iso | null;
  readonly failing: { readonly resources: readonly string[]; readonly count: number; readonly since: Iso; readonly message: string } | null;
}
export interface BuildDetail {
  readonly build: string;
  readonly commit: string;
  readonly try: number;
  readonly state: 'requested' | 'published' | 'taken' | 'answered' | 'cancelled';
  readonly verdict: Verdict;
  readonly isEffective: boolean;
  readonly reason: string | null;
  readonly step: string | null;
  readonly requestedAt: Iso;
  readonly answeredAt: Iso | null;
  readonly builtBy: string | null;
  readonly askedBy: string | null;
  readonly notReproducible: boolean;
  readonly isCheck: boolean;
  readonly differing: ReadonlyArray<{ readonly artifact: string; readonly file: string }> | null;
  readonly provenance: string | null;
  readonly log: string | null;
  readonly artifacts: ReadonlyArray<{ readonly name: string; readonly kind: string; readonly digest: string; readonly size: number }>;
}
export interface IntentDetail {
  readonly verb: string;
  readonly module: string | null;
  readonly node: string | null;
  readonly build: string | null;
  readonly who: string;
  readonly why: string;
  readonly at: Iso;
}
export interface ModuleDetail {
  readonly module: string;
  readonly addedAt: Iso;
  readonly readAt: Iso | null;
  readonly declare: { readonly policy: DeclarePolicy; readonly from: 'manifest' | 'mesh' };
  readonly hold: { readonly by: string; readonly why: string; readonly at: Iso; readonly build: string | null } | null;
  readonly placements: readonly PlacementDetail[];
  /** Newest first, at most 20. */
  readonly builds: readonly BuildDetail[];
  /** Of the inspection of the head. */
  readonly problems: readonly string[];
  readonly notes: readonly string[];
  /** Newest first, at most 20. */
  readonly intents: readonly IntentDetail[];
}
export interface NodeDetail {
  readonly node: string;
  readonly facts: Readonly<Record<string, string>>;
  readonly addedAt: Iso;
  readonly publicKey: string | null;
  readonly sealKey: string | null;
  readonly keyRefused: string | null;
  readonly epochs: number;
  readonly epochSince: Iso | null;
  readonly hostVersion: string | null;
  readonly shapes: readonly string[];
  readonly sent: { readonly sequence: number; readonly digest: string; readonly at: Iso | null } | null;
  readonly received: { readonly sequence: number; readonly digest: string | null } | null;
  readonly applied: { readonly sequence: number; readonly digest: string | null } | null;
  readonly placements: readonly PlacementDetail[];
  /** Newest first, at most 10. */
  readonly reports: ReadonlyArray<{
    readonly epoch: string;
    readonly number: number;
    readonly receivedAt: Iso;
    readonly failures: readonly string[];
    readonly changes: number;
    readonly refused: string | null;
  }>;
}
/** As an object of JSON; `p` is the placement, `b` the build that is declared, `a` the one that is applied. */
const PLACEMENT = `jsonb_build_object(
  'module', p.module, 'node', p.node,
  'declared', case when b.id is not null then jsonb_build_object('build', b.id, 'commit', b.commit) end,
  'applied', case when a.id is not null then jsonb_build_object('build', a.id, 'commit', a.commit, 'at', iso(p.applied_at)) end,
  'isApplied', p.is_applied,
  'outstandingSince', iso(p.outstanding_since),
  'failing', case when p.failing_resources is not null then jsonb_build_object(
    'resources', p.failing_resources, 'count', p.failing_count, 'since', iso(p.failing_since), 'message', p.failing_message) end)`;

const PLACEMENTS = `placement p
  left join build b on b.id = p.build_id
  left join build a on a.id = case when p.applied_digest = p.want_digest then p.want_build else p.applied_build end`;

/** Goes with the row of `moduleStatuses`; null: there is no such module. */
export async function moduleDetail(db: Db, module: string): Promise<ModuleDetail | null> {
  const [row] = await db.query<ModuleDetail>(
    `select m.name as module, iso(m.added_at) as "addedAt", iso(m.read_at) as "readAt",
       jsonb_build_object(
         'policy', coalesce(i.manifest ->> 'declare', (select value #>> '{}' from setting where key = 'declareDefault'), 'ask'),
         'from', case when i.manifest ->> 'declare' is null then 'mesh' else 'manifest' end) as declare,
       case when m.held_at is not null then jsonb_build_object('by', m.held_by, 'why', m.held_why, 'at', iso(m.held_at), 'build', m.held_build) end as hold,
       (select coalesce(jsonb_agg(${PLACEMENT} order by p.node), '[]') from ${PLACEMENTS} where p.module = m.name) as placements,
       builds.newest as builds,
       coalesce((select jsonb_agg((f ->> 'file') || ':' || (f ->> 'line') || ' ' || case when f ->> 'key' = '' then '' else (f ->> 'key') || ': ' end || (f ->> 'message'))
         from jsonb_array_elements(i.problems) f), '[]') as problems,
       coalesce(i.notes, '[]') as notes,
       (select coalesce(jsonb_agg(jsonb_build_object('verb', t.verb, 'module', t.module, 'node', t.node, 'build', t.build_id, 'who', t.who, 'why', t.why, 'at', iso(t.at)) order by t.at desc), '[]')
        from (select * from intent t where t.module = m.name order by t.at desc limit 20) t) as intents
     from module m
     left join inspection i on i.module = m.name and i.commit = m.head_commit
     cross join lateral (
       select coalesce(jsonb_agg(jsonb_build_object(
         'build', b.id, 'commit', b.commit, 'try', b.try_number, 'state', r.state, 'verdict', coalesce(b.verdict, 'outstanding'), 'isEffective', b.id = m.effective_build is true,
         'reason', coalesce(b.reason, r.trouble_reason, r.stop_reason), 'step', coalesce(b.failed_step, r.step), 'requestedAt', iso(r.requested_at), 'answeredAt', iso(b.answered_at),
         'builtBy', coalesce(b.built_by, r.taken_by), 'askedBy', b.asked_by, 'notReproducible', b.not_reproducible, 'isCheck', r.body ->> 'check' is not distinct from 'true', 'differing', b.differing, 'provenance', b.provenance, 'log', b.log,
         'artifacts', (select coalesce(jsonb_agg(jsonb_build_object('name', a.name, 'kind', a.kind, 'digest', a.digest, 'size', a.size) order by a.name), '[]') from artifact a where a.build_id = b.id)
       ) order by r.requested_at desc, b.id desc), '[]') as newest
       from (select * from request where module = m.name and kind = 'build' order by requested_at desc, id desc limit 20) r join build b on b.id = r.id
     ) builds
     where m.name = $1`,
    [module],
  );
  return row ?? null;
}

/** Goes with the row of `nodeStatuses`; null: there is no such node. */
export async function nodeDetail(db: Db, node: string): Promise<NodeDetail | null> {
  const [row] = await db.query<NodeDetail>(
    `select n.name as node, n.facts, iso(n.added_at) as "addedAt", n.public_key as "publicKey", n.seal_key as "sealKey", n.key_refused as "keyRefused", n.epochs, iso(n.epoch_since) as "epochSince",
       n.host_version as "hostVersion", coalesce(n.reads -> 'shapes', '[]') as shapes,
       case when n.sent_sequence is not null then jsonb_build_object('sequence', n.sent_sequence, 'digest', n.sent_digest, 'at', iso(n.sent_at)) end as sent,
       case when n.received_sequence > 0 then jsonb_build_object('sequence', n.received_sequence, 'digest', n.received_digest) end as received,
       case when n.applied_sequence > 0 then jsonb_build_object('sequence', n.applied_sequence, 'digest', n.applied_digest) end as applied,
       (select coalesce(jsonb_agg(${PLACEMENT} order by p.module), '[]') from ${PLACEMENTS} where p.node = n.name) as placements,
       (select coalesce(jsonb_agg(jsonb_build_object(
          'epoch', r.epoch, 'number', r.number, 'receivedAt', iso(r.received_at),
          'failures', (select coalesce(jsonb_agg((d ->> 'module') || ' ' || (f ->> 'resource') || ': ' || (f ->> 'message')), '[]')
                       from jsonb_array_elements(r.body -> 'modules') d, jsonb_array_elements(d -> 'failures') f),
          'changes', (select count(*) from jsonb_array_elements(r.body -> 'modules') d, jsonb_array_elements(d -> 'changes')),
          'refused', r.body #>> '{refused,reason}') order by r.received_at desc, r.number desc), '[]')
        from (select * from report r where r.node = n.name order by r.received_at desc, r.number desc limit 10) r) as reports
     from node n where n.name = $1`,
    [node],
  );
  return row ?? null;
}

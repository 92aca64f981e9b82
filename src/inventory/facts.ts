const FACTS = `
select jsonb_build_object(
  'module', m.name,
  'now', iso($2::timestamptz),
  'version', m.facts_version,
  'source', jsonb_build_object(
    'repository', m.repository,
    'ref', m.ref,
    'head', case when m.head_commit is not null then jsonb_build_object('commit', m.head_commit, 'since', iso(m.head_since)) end,
    'trouble', case when m.trouble_kind is not null then jsonb_build_object('kind', m.trouble_kind, 'reason', m.trouble_reason, 'since', iso(m.trouble_since)) end),
  'inspection', case when i.commit is not null then jsonb_build_object(
    'commit', i.commit,
    'outcome', i.outcome,
    'answeredAt', iso(i.answered_at),
    'problems', problems.lines,
    'declare', i.manifest ->> 'declare',
    'platform', coalesce(i.manifest #>> '{build,platform}', 'linux-amd64'),
    'supersede', coalesce(i.manifest #>> '{build,supersede}', 'finish')) end,
  'requests', requests.open,
  'closure', case when i.outcome = 'valid' then m.closure end,
  'headBuild', case when head.id is not null then jsonb_build_object(
    'id', head.id, 'commit', head.commit, 'closure', head.closure, 'tryNumber', head.try_number, 'verdict', head.verdict, 'reason', head.reason, 'answeredAt', iso(head.answered_at)) end,
  'again', case when m.again_at is not null then jsonb_build_object('by', m.again_by, 'at', iso(m.again_at)) end,
  'effective', case when e.id is not null then jsonb_build_object(
    'id', e.id, 'commit', e.commit, 'closure', e.closure, 'tryNumber', e.try_number, 'verdict', e.verdict, 'reason', e.reason, 'answeredAt', iso(e.answered_at)) end,
  -- What waits is searched for only where something may have to wait.
  'graph', case when i.outcome = 'valid' and m.stale_since is not null then waits_of(m.name)
    else '{"settling": [], "missing": [], "cycle": null, "bootstrap": null}' end || jsonb_build_object(
      'inputs', used.now, 'builtInputs', used.built, 'staleSince', case when i.outcome = 'valid' then iso(m.stale_since) end,
      'openImport', case when i.outcome = 'valid' and m.stale_since is not null and m.open_import is not null then open_import_of(m.name) end,
      'conflicts', m.conflicts, 'unparsed', unparsed.lines),
  'effectiveDeclare', ei.manifest ->> 'declare',
  'placements', placements.here,
  'meshDeclare', coalesce(mesh.declare_default, 'ask'),
  'approved', case when m.approved_build is not null then jsonb_build_object('buildId', m.approved_build, 'by', m.approved_by) end,
  'hold', case when m.held_at is not null then jsonb_build_object('by', m.held_by, 'why', m.held_why, 'at', iso(m.held_at), 'buildId', m.held_build) end,
  'builderSeenAt', iso(builders.seen)
) as facts
from module m
left join inspection i on i.module = m.name and i.commit = m.head_commit
left join build e on e.id = m.effective_build
left join inspection ei on ei.module = m.name and ei.commit = e.commit
left join lateral (
  select b.* from build b
  where i.outcome = 'valid' and b.module = m.name and b.closure = m.closure and b.verdict is not null
  order by b.try_number desc, b.id desc limit 1
) head on true
cross join lateral (
  select coalesce(jsonb_agg(
    (p.value ->> 'file') || ':' || (p.value ->> 'line') || ' ' || case when p.value ->> 'key' = '' then '' else (p.value ->> 'key') || ': ' end || (p.value ->> 'message')
    order by p.ordinality), '[]') as lines
  from jsonb_array_elements(i.problems) with ordinality p
) problems
cross join lateral (
  select coalesce(jsonb_agg(jsonb_build_object(
    'id', r.id, 'kind', r.kind, 'commit', r.commit, 'closure', nullif(r.closure, ''), 'state', r.state, 'attempt', r.attempt,
    'requestedAt', iso(r.requested_at),
    'takenBy', case when r.state = 'taken' then r.taken_by end,
    'takenAt', case when r.state = 'taken' then iso(r.taken_at) end,
    'step', case when r.state = 'taken' then r.step end,
    -- A second or third attempt that runs is building; one that fails over and over stays in trouble while it runs.
    'trouble', case when r.trouble_since is not null and (r.state <> 'taken' or r.lost_attempts >= 3)
      then jsonb_build_object('reason', r.trouble_reason, 'since', iso(r.trouble_since)) end,
    'lostAttempts', r.lost_attempts,
    'retryAt', iso(r.retry_at),
    'isSuspect', is_suspect(r),
    'isStopping', r.stop_reason is not null
  ) order by r.requested_at, r.id), '[]') as open
  from request r where r.module = m.name and r.state in ('requested', 'published', 'taken')
) requests
cross join lateral (
  select coalesce(jsonb_agg(jsonb_build_object(
    'node', p.node,
    'build', case when p.build_id is not null then jsonb_build_object('id', p.build_id, 'commit', b.commit) end,
    'isSame', case when p.build_id <> e.id and b.commit = e.commit then
      (select array_agg(x.name || '@' || x.digest order by x.name) from artifact x where x.build_id = b.id)
        is not distinct from (select array_agg(x.name || '@' || x.digest order by x.name) from artifact x where x.build_id = e.id) else false end,
    'applied', case when a.id is not null then jsonb_build_object('buildId', a.id, 'commit', a.commit, 'at', iso(p.applied_at)) end,
    'isApplied', p.is_applied,
    'outstandingSince', iso(p.outstanding_since),
    'waitingOn', waiting.word,
    'detail', case waiting.word
      when 'workout' then n.not_worked_out
      when 'send' then n.send_trouble
      when 'node' then n.refused_reason
      when 'apply' then coalesce(p.failing_message, n.refused_reason) end,
    'failing', case when p.failing_resources is not null then jsonb_build_object(
      'resources', p.failing_resources, 'count', p.failing_count, 'since', iso(p.failing_since), 'message', p.failing_message) end,
    'awaySince', case when coalesce(n.last_beat_at, n.added_at) + $3 * interval '1 millisecond' <= $2::timestamptz then iso(coalesce(n.last_beat_at, n.added_at)) end,
    'blocked', case when p.blocked_build is not null and p.blocked_build = m.effective_build then jsonb_build_object(
      'reason', p.blocked_reason, 'since', iso(p.blocked_since), 'needsPerson', p.blocked_needs_person) end
  ) order by p.node), '[]') as here
  from placement p
  join node n on n.name = p.node
  left join build b on b.id = p.build_id
  -- The same digest from another build is that other build, applied.
  left join build a on a.id = case when p.applied_digest = p.want_digest then p.want_build else p.applied_build end
  cross join lateral (
    select case
      when p.build_id is null or p.is_applied then null
      when p.want_build is distinct from p.build_id and n.not_worked_out is not null then 'workout'
      when p.want_build is distinct from p.build_id or coalesce(n.sent_sequence, 0) < coalesce(p.want_sequence, 1) then 'send'
      when n.received_sequence < p.want_sequence then 'node'
      else 'apply' end as word
  ) waiting
  where p.module = m.name
) placements
cross join lateral (
  select max(b.last_beat_at) as seen from builder b
  where i.manifest is null or coalesce(i.manifest #>> '{build,platform}', 'linux-amd64') = any (b.platforms)
) builders
cross join lateral (
  select
    (select coalesce(jsonb_agg(jsonb_build_object('module', u.input, 'artifact', u.artifact, 'digest', u.digest, 'isTest', u.is_test) order by u.input, u.artifact), '[]')
     from module_input u where u.module = m.name and i.outcome = 'valid') as now,
    (select coalesce(jsonb_agg(jsonb_build_object('module', u.module, 'artifact', u.artifact, 'digest', u.digest, 'isTest', u.is_test) order by u.module, u.artifact), '[]')
     from build_input u
     where u.build_id = case when head.verdict = 'failed' then m.effective_build else (
       select b.id from build b where i.outcome = 'valid' and b.module = m.name and b.commit = m.head_commit and b.verdict is not null
       order by b.answered_at desc, b.id desc limit 1) end) as built
) used
cross join lateral (
  select coalesce(jsonb_agg((u.value ->> 'file') || ':' || (u.value ->> 'line') || ' ' || (u.value ->> 'reason') order by u.ordinality), '[]') as lines
  from jsonb_array_elements(i.unknown) with ordinality u where u.value ->> 'kind' = 'unparsed'
) unparsed
left join lateral (select value #>> '{}' as declare_default from setting where key = 'declareDefault') mesh on true
`;

/** Values: a module, now, and how long a silent host is not yet away (ms). One statement, so one snapshot; planned once a connection. */
export const FACTS_OF_ONE = `${FACTS} where m.name = $1`;

/** The same for an array of modules. */
export const FACTS_OF_MANY = `${FACTS} where m.name = any ($1) order by m.name`;

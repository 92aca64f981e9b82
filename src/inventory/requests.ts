import { ulid } from 'ulid';
import type { Db } from './db';
import { toText } from './text';

export type BeginPublish =
  | { readonly kind: 'publish'; readonly routingKey: string; readonly body: object; readonly attempt: number }
  | { readonly kind: 'done'; readonly outcome: string }
  | { readonly kind: 'running' }
  | { readonly kind: 'later'; readonly reason: string; readonly delayMs: number };

export interface BuildAsked {
  readonly module: string;
  readonly commit: string;
  readonly closure: string;
  readonly platform: string;
  readonly askedBy: string | null;
}

/** The id of the new or the already open inspection; null when the commit is not the head any more or is inspected. */
export async function openInspection(db: Db, module: string, commit: string): Promise<string | null> {
  const [opened] = await db.query<{ id: string }>(
    `with head as (
       select m.name, m.repository, m.ref from module m
       where m.name = $2 and m.head_commit = $3 and not exists (select from inspection i where i.module = m.name and i.commit = $3)
       for no key update
     ), fresh as (
       insert into request (id, kind, module, commit, closure, platform, body)
       select $1, 'inspect', name, $3, '', 'any',
         jsonb_build_object('v', 1, 'kind', 'inspect', 'request', $1::text, 'module', name, 'repository', repository, 'ref', ref, 'commit', $3::text)
       from head
       on conflict (module, kind, commit, closure) where state in ('requested', 'published', 'taken') and stop_reason is null do nothing
       returning id
     )
     select id from fresh
     union all
     select r.id from request r join head on r.module = head.name
     where r.kind = 'inspect' and r.commit = $3 and r.state in ('requested', 'published', 'taken') and r.stop_reason is null`,
    [ulid(), module, commit],
  );
  return opened?.id ?? null;
}

/**
 * What a build of the module named $2 would use now, as its request carries it: each artifact of the closure as its module
 * made it, or, where that makes it no more, as somebody used it. The order is that of the closure.
 */
const INPUTS = `
  select coalesce(jsonb_agg(jsonb_build_object(
    'module', u.input, 'artifact', u.artifact, 'kind', found.kind, 'repository', found.repository, 'digest', u.digest, 'blob', found.blob, 'size', found.size,
    'commit', found.commit, 'names', found.names, 'test', u.is_test) order by u.input collate "C", u.artifact collate "C"), '[]') as list
  from module_input u
  cross join lateral (
    select * from (
      select 1 as place, a.kind, a.repository, a.blob, a.size, b.commit, coalesce(
        (select jsonb_agg(jsonb_build_object('language', x ->> 'language', 'name', x ->> 'name') order by x ->> 'language', x ->> 'name')
         from inspection n, jsonb_array_elements(n.exports) x where n.module = b.module and n.commit = b.commit and x ->> 'artifact' = u.artifact),
        (select jsonb_agg(jsonb_build_object('language', x.language, 'name', x.name) order by x.language, x.name)
         from module_export x where x.module = u.input and x.artifact = u.artifact),
        '[]') as names
      from module z join build b on b.id = z.effective_build join artifact a on a.build_id = b.id and a.name = u.artifact and a.digest = u.digest
      where z.name = u.input
      union all
      (select 2, r.kind, r.repository, r.blob, r.size, r.commit, r.names from build_input r
       where (r.module, r.artifact, r.digest) = (u.input, u.artifact, u.digest) order by r.build_id desc limit 1)
    ) known order by place limit 1
  ) found
  where u.module = $2`;

/**
 * The id of the new or the already open build; null when head or closure moved, or it has its verdict and nobody asked
 * again. Its inputs are read here, in the same snapshot, so that they are those of the closure that was asked for.
 */
export async function openBuild(db: Db, asked: BuildAsked): Promise<string | null> {
  const [opened] = await db.query<{ id: string }>(
    `with inputs as materialized (${INPUTS}
     ), head as (
       select m.name, m.repository, m.ref, m.again_check, inputs.list as inputs from module m cross join inputs
       join inspection i on i.module = m.name and i.commit = m.head_commit and i.outcome = 'valid'
       where m.name = $2 and m.head_commit = $3 and m.closure = $4 and closure_of(m.head_commit, inputs.list) = $4
         and (m.again_at is not null or not exists (select from build b where b.module = m.name and b.closure = $4 and b.verdict is not null))
       for no key update of m
     ), fresh as (
       insert into request (id, kind, module, commit, closure, platform, body)
       select $1, 'build', name, $3, $4, $5, jsonb_build_object(
         'v', 1, 'kind', 'build', 'request', $1::text, 'mesh', coalesce((select value #>> '{}' from setting where key = 'mesh'), 'home'),
         'module', name, 'repository', repository, 'ref', ref, 'commit', $3::text, 'platform', $5::text, 'closure', $4::text, 'inputs', inputs)
         || case when again_check then jsonb_build_object('check', true) else '{}' end
       from head
       on conflict (module, kind, commit, closure) where state in ('requested', 'published', 'taken') and stop_reason is null do nothing
       returning id, module, body
     ), record as (
       insert into build (id, module, commit, closure, inputs, try_number, asked_by)
       select f.id, f.module, $3, $4, f.body -> 'inputs', 1 + (select count(*) from build b where b.module = f.module and b.closure = $4 and b.verdict is not null), $6
       from fresh f
     ), consumed as (
       update module m set again_at = null, again_by = null, again_check = false from fresh f where m.name = f.module and m.again_at is not null
     )
     select id from fresh
     union all
     select r.id from request r join head on r.module = head.name
     where r.kind = 'build' and r.commit = $3 and r.closure = $4 and r.state in ('requested', 'published', 'taken') and r.stop_reason is null`,
    [ulid(), asked.module, asked.commit, asked.closure, asked.platform, asked.askedBy],
  );
  return opened?.id ?? null;
}

/** The SQL of the queue that a request is published to. */
export const ROUTING_KEY = `case when kind = 'inspect' then 'inspect' else 'build.' || platform end`;

/** What a request's end is called: the verdict of a build, the outcome of an inspection, else `cancelled`. */
export const OUTCOME = `coalesce(
  (select b.verdict from build b where b.id = r.id),
  (select i.outcome from inspection i where r.kind = 'inspect' and r.state = 'answered' and i.module = r.module and i.commit = r.commit),
  'cancelled')`;

interface RequestRow {
  readonly state: 'requested' | 'published' | 'taken' | 'answered' | 'cancelled';
  readonly attempt: number;
  readonly body: object;
  readonly routingKey: string;
  readonly retryAt: Date | null;
  readonly trouble: string | null;
  readonly outcome: string;
}

export async function beginPublish(db: Db, requestId: string, now: Date): Promise<BeginPublish> {
  const [row] = await db.query<RequestRow>(
    `select state, attempt, body, ${ROUTING_KEY} as "routingKey", retry_at as "retryAt", trouble_reason as trouble, ${OUTCOME} as outcome from request r where id = $1`,
    [requestId],
  );
  if (row === undefined) return { kind: 'done', outcome: 'gone' };
  if (row.state === 'answered' || row.state === 'cancelled') return { kind: 'done', outcome: row.outcome };
  if (row.state !== 'requested') return { kind: 'running' };
  const delayMs = row.retryAt === null ? 0 : row.retryAt.getTime() - now.getTime();
  if (delayMs > 0) return { kind: 'later', reason: row.trouble ?? 'it is to be tried again later', delayMs };
  return { kind: 'publish', routingKey: row.routingKey, body: { ...row.body, attempt: row.attempt }, attempt: row.attempt };
}

/** After the broker's confirm; a builder may have taken it before. */
export async function markPublished(db: Db, requestId: string, attempt: number): Promise<void> {
  await db.query(
    `update request set
       state = case when state = 'requested' then 'published' else state end,
       published_at = now(),
       -- What kept it from being published is over; what ended attempts before is not.
       trouble_reason = case when lost_attempts > 0 then trouble_reason end,
       trouble_since = case when lost_attempts > 0 then trouble_since end
     where id = $1 and attempt = $2 and state in ('requested', 'taken')`,
    [requestId, attempt],
  );
}

export async function recordPublishFailure(db: Db, requestId: string, reason: string, now: Date): Promise<void> {
  await db.query(`update request set trouble_reason = $2, trouble_since = coalesce(trouble_since, $3) where id = $1 and state = 'requested'`, [
    requestId,
    toText(reason),
    now,
  ]);
}

/** What has not started is cancelled; what runs is told to stop. */
export async function cancelRequests(db: Db, ids: readonly string[], reason: string): Promise<void> {
  await db.query(
    `update request set
       state = case when state = 'taken' then state else 'cancelled' end,
       answered_at = case when state = 'taken' then null else now() end,
       stop_reason = $2
     where id = any ($1) and state in ('requested', 'published', 'taken') and stop_reason is null`,
    [ids, reason],
  );
}

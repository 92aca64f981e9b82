import type { Times } from '../domain/times';
import type { Answer, BuildAnswer, Input, InspectAnswer } from '../schema/messages';
import type { Db } from './db';
import { lockGraph } from './graph';
import { OUTCOME } from './requests';
import { endStopped, tryAgain } from './retry';
import { toJson, toText } from './text';

export interface Recorded {
  /** False when this (request, attempt) had been answered before. */
  readonly first: boolean;
  /** null: no such request. */
  readonly module: string | null;
  /** True when the request has ended; false when it will be tried again. */
  readonly final: boolean;
  /** valid, invalid, fit, failed, cancelled or environment. */
  readonly outcome: string;
  readonly retry: { readonly reason: string; readonly delayMs: number } | null;
}

interface Asked {
  readonly module: string;
  readonly kind: 'inspect' | 'build';
  readonly commit: string;
  readonly state: 'requested' | 'published' | 'taken' | 'answered' | 'cancelled';
  readonly attempt: number;
  readonly isStopping: boolean;
}

/** One transaction: the answer, what it says, and what is effective by it. Fit and failed end a build, the first wins. */
export async function recordAnswer(db: Db, answer: Answer, now: Date, times: Times): Promise<Recorded> {
  return db.transaction(async (tx) => {
    const [asked] = await tx.query<Asked>(
      `select module, kind, commit, state, attempt, stop_reason is not null as "isStopping" from request where id = $1 for update`,
      [answer.request],
    );
    if (asked === undefined || asked.kind !== answer.kind) return { first: false, module: null, final: true, outcome: 'gone', retry: null };
    const kept = await tx.query(
      'insert into answer (request_id, attempt, body, received_at) values ($1, $2, $3, $4) on conflict do nothing returning attempt',
      [answer.request, answer.attempt, toJson(answer), now],
    );
    const first = kept.length > 0;
    const retry = first ? await takeIn(tx, asked, answer, now, times) : null;
    const [after] = await tx.query<{ final: boolean; outcome: string }>(
      `select state in ('answered', 'cancelled') as final, ${OUTCOME} as outcome from request r where id = $1`,
      [answer.request],
    );
    const final = after?.final ?? true;
    return { first, module: asked.module, final, outcome: final ? (after?.outcome ?? 'gone') : 'environment', retry };
  });
}

async function takeIn(tx: Db, asked: Asked, answer: Answer, now: Date, times: Times): Promise<Recorded['retry']> {
  if (answer.kind === 'inspect' && answer.outcome !== 'environment') {
    await takeInspection(tx, asked, answer, now);
    return null;
  }
  const reach =
    answer.kind === 'build' && 'missing' in answer && answer.missing !== undefined ? await reachOf(tx, answer.request, answer.missing) : null;
  if (answer.kind === 'build' && (answer.outcome === 'fit' || (answer.outcome === 'failed' && reach?.isInputNow !== true))) {
    await takeVerdict(tx, answer, reach, now);
    return null;
  }
  // An environmental answer ends its own attempt and nothing else.
  if (asked.state === 'answered' || asked.state === 'cancelled' || answer.attempt !== asked.attempt) return null;
  // Another attempt would have the same inputs: the next comparison asks for a build with those of now.
  if (asked.isStopping || reach?.isInputNow === true) {
    await endStopped(tx, [answer.request], now);
    return null;
  }
  if (answer.kind === 'build' && answer.outcome === 'environment' && reach !== null) {
    const [build] = await tx.query<{ inputs: Input[] }>('select inputs from build where id = $1', [answer.request]);
    await takeVerdict(tx, { ...answer, outcome: 'failed', inputs: build?.inputs ?? [] }, reach, now);
    return null;
  }
  const said = 'reason' in answer ? answer.reason : 'the builder stopped it';
  const reason = toText('step' in answer ? `${answer.step}: ${said}` : said);
  const [retry] = await tryAgain(tx, [{ request: answer.request, attempt: answer.attempt, reason }], now, times);
  return retry === undefined ? null : { reason, delayMs: retry.delayMs };
}

async function takeInspection(tx: Db, asked: Asked, answer: Exclude<InspectAnswer, { outcome: 'environment' }>, now: Date): Promise<void> {
  const isValid = answer.outcome === 'valid';
  await lockGraph(tx);
  // Not correlated, so that names of before are looked up and not compared with each of now.
  // Where a file cannot be parsed, what was imported before still is, and what such a file exported still is exported.
  await tx.query(
    `with said as (
       select $7::jsonb as exports, $8::jsonb as imports, $9::jsonb as unknown
     ), before as (
       select i.exports, i.imports from module m join inspection i on i.module = m.name and i.commit = m.edges_commit
       where m.name = $1 and exists (select from said, jsonb_array_elements(said.unknown) u where u ->> 'kind' = 'unparsed')
     )
     insert into inspection (module, commit, request_id, outcome, manifest, problems, notes, exports, imports, unknown, answered_at)
     select $1, $2, $3, $4, $5, $6, $11,
       said.exports || coalesce((
         select jsonb_agg(x) from before, jsonb_array_elements(before.exports) x
         where exists (select from jsonb_array_elements(said.unknown) u where u ->> 'kind' = 'unparsed' and u -> 'file' = x -> 'file')
           and (x -> 'language', x -> 'name') not in (select s -> 'language', s -> 'name' from jsonb_array_elements($7::jsonb) s)), '[]'),
       said.imports || coalesce((
         select jsonb_agg(x) from before, jsonb_array_elements(before.imports) x
         where (x -> 'language', x -> 'name', x -> 'test') not in (
           select s -> 'language', s -> 'name', s -> 'test' from jsonb_array_elements($8::jsonb) s)), '[]'),
       said.unknown, $10
     from said
     on conflict do nothing`,
    [
      asked.module,
      asked.commit,
      answer.request,
      answer.outcome,
      isValid ? toJson(answer.manifest) : null,
      toJson(isValid ? [] : answer.problems),
      toJson(isValid ? (answer.exports ?? []) : []),
      toJson(isValid ? (answer.imports ?? []) : []),
      toJson(isValid ? (answer.unknown ?? []) : []),
      now,
      toJson(isValid ? answer.notes : []),
    ],
  );
  await endAnswered(tx, answer.request, now);
}

type VerdictAnswer = Pick<Extract<BuildAnswer, { outcome: 'fit' }>, 'request' | 'builder' | 'inputs' | 'log' | 'steps'> &
  (
    | Pick<Extract<BuildAnswer, { outcome: 'fit' }>, 'outcome' | 'artifacts' | 'provenance' | 'check'>
    | Pick<Extract<BuildAnswer, { outcome: 'failed' }>, 'outcome' | 'step' | 'reason'>
  );

/**
 * One statement, so that whatever the verdict touches in the graph is worked out once, when all of it is there. A fit
 * build of a commit with the inputs of an earlier one made what that made: its digests stay in force, and others are the
 * observation that the build is not reproducible. What only tests use makes no artifact.
 */
async function takeVerdict(tx: Db, answer: VerdictAnswer, reach: Reach | null, now: Date): Promise<void> {
  const failed = answer.outcome === 'failed' ? answer : null;
  const fit = answer.outcome === 'fit' ? answer : null;
  await lockGraph(tx);
  const ended = await tx.query(
    `with made as (
       select * from jsonb_to_recordset($11::jsonb) a (name text, kind text, repository text, digest text, blob text, size bigint)
     ), used as (
       select distinct on (i.module, i.artifact) i.* from jsonb_to_recordset($5::jsonb)
         i (module text, artifact text, digest text, test boolean, kind text, repository text, blob text, size bigint, commit text, names jsonb)
       order by i.module, i.artifact, i.test
     ), same as (
       select b.id from build mine join build b on b.module = mine.module and b.commit = mine.commit and b.id <> mine.id and b.verdict = 'fit'
       where mine.id = $1 and $2 = 'fit'
         and not exists (
           select from (select u.module, u.artifact, u.digest from used u where not u.test) u
           full join (select i.module, i.artifact, i.digest from build_input i where i.build_id = b.id and not i.is_test) i
             on (i.module, i.artifact, i.digest) = (u.module, u.artifact, u.digest)
           where u.module is null or i.module is null)
       order by b.answered_at, b.id limit 1
     ), earlier as (
       select a.* from artifact a join same on same.id = a.build_id
     ), ended as (
       update build set verdict = $2, reason = $3, failed_step = $4, inputs = $5, answered_at = $6, built_by = $7, provenance = $8, log = $9, steps = $10,
         differing = $12, not_reproducible = coalesce(jsonb_array_length($12), 0) > 0 or exists (select from made join earlier using (name) where made.digest <> earlier.digest)
       where id = $1 and verdict is null returning id
     ), artifacts as (
       insert into artifact (build_id, name, kind, repository, digest, blob, size)
       select ended.id, m.name, coalesce(e.kind, m.kind), coalesce(e.repository, m.repository), coalesce(e.digest, m.digest), coalesce(e.blob, m.blob), coalesce(e.size, m.size)
       from ended cross join made m left join earlier e on e.name = m.name
       on conflict do nothing
     ), inputs as (
       insert into build_input (build_id, module, artifact, digest, is_test, kind, repository, blob, size, commit, names)
       select ended.id, u.module, u.artifact, u.digest, u.test, u.kind, u.repository, u.blob, u.size, u.commit, u.names from ended cross join used u
     )
     select id from ended`,
    [
      answer.request,
      answer.outcome,
      failed === null ? null : toText(reach?.says ?? failed.reason),
      failed?.step ?? null,
      toJson(answer.inputs),
      now,
      answer.builder,
      fit?.provenance ?? null,
      answer.log,
      toJson(answer.steps),
      toJson(fit?.artifacts ?? []),
      fit?.check === undefined ? null : toJson(fit.check.differing),
    ],
  );
  if (ended.length > 0) await endAnswered(tx, answer.request, now);
}

interface Reach {
  readonly says: string;
  /** Nobody knew when the build was asked for: the module that exports it was inspected while it ran. No fault of the code. */
  readonly isInputNow: boolean;
}

/** What the build reached for that a module of the mesh exports and its closure lacks; null: nothing. */
async function reachOf(tx: Db, request: string, missing: ReadonlyArray<{ readonly language: string; readonly name: string }>): Promise<Reach | null> {
  if (missing.length === 0) return null;
  await lockGraph(tx);
  const [found] = await tx.query<{ module: string; name: string; isInputNow: boolean }>(
    `select e.module, e.name, e.is_edge and m.head_commit = b.commit as "isInputNow"
     from jsonb_array_elements($2::jsonb) with ordinality s (value, place)
     cross join lateral (select s.value ->> 'language' as language, s.value ->> 'name' as name) wanted
     join build b on b.id = $1
     join module m on m.name = b.module
     cross join lateral (
       select x.input as module, x.artifact, x.name, true as is_edge, is_awaited(x.input, x.language, x.name) as is_awaited, null::timestamptz as since
       from build_edge x where x.module = b.module and (x.language, x.name) = (wanted.language, wanted.name)
       union all
       -- What code imports and what is no edge all the same is of outside.
       select o.module, o.artifact, o.name, false, false, o.since from (
         select language, name, module, artifact, since from kept_export union all select language, name, module, artifact, since from module_export
       ) o where (o.language, o.name) = (wanted.language, wanted.name) and not exists (
         select from module_import i where i.module = b.module and i.language = wanted.language and wanted.name = any (i.candidates))
     ) e
     where e.module <> b.module
       and (e.is_awaited or not exists (select from jsonb_array_elements(b.inputs) i where i ->> 'module' = e.module and i ->> 'artifact' = e.artifact))
     order by s.place, e.is_edge desc, e.since, e.module limit 1`,
    [request, toJson(missing)],
  );
  if (found === undefined) return null;
  const { module, name, isInputNow } = found;
  return { isInputNow, says: `reaches for ${module} (${name}), which is not in its closure: import it in code that Tally can read` };
}

/** The whole log is in the registry by now. */
async function endAnswered(tx: Db, request: string, now: Date): Promise<void> {
  await tx.query(
    `with quiet as (delete from log_line where request_id = $1)
     update request set state = 'answered', answered_at = $2, trouble_reason = null, trouble_since = null, retry_at = null where id = $1`,
    [request, now],
  );
}

import type { Times } from '../domain/times';
import type { Answer, BuildAnswer, InspectAnswer } from '../schema/messages';
import type { Db } from './db';
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
  if (answer.kind === 'build' && (answer.outcome === 'fit' || answer.outcome === 'failed')) {
    await takeVerdict(tx, asked, answer, now);
    return null;
  }
  // An environmental answer ends its own attempt and nothing else.
  if (asked.state === 'answered' || asked.state === 'cancelled' || answer.attempt !== asked.attempt) return null;
  if (asked.isStopping) {
    await endStopped(tx, [answer.request], now);
    return null;
  }
  const said = 'reason' in answer ? answer.reason : 'the builder stopped it';
  const reason = toText('step' in answer ? `${answer.step}: ${said}` : said);
  const [retry] = await tryAgain(tx, [{ request: answer.request, attempt: answer.attempt, reason }], now, times);
  return retry === undefined ? null : { reason, delayMs: retry.delayMs };
}

async function takeInspection(tx: Db, asked: Asked, answer: Exclude<InspectAnswer, { outcome: 'environment' }>, now: Date): Promise<void> {
  const manifest = answer.outcome === 'valid' ? toJson(answer.manifest) : null;
  await tx.query(
    `insert into inspection (module, commit, request_id, outcome, manifest, problems, notes, answered_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
    [
      asked.module,
      asked.commit,
      answer.request,
      answer.outcome,
      manifest,
      toJson(answer.outcome === 'invalid' ? answer.problems : []),
      toJson(answer.outcome === 'valid' ? answer.notes : []),
      now,
    ],
  );
  await endAnswered(tx, answer.request, now);
}

async function takeVerdict(tx: Db, asked: Asked, answer: Extract<BuildAnswer, { outcome: 'fit' | 'failed' }>, now: Date): Promise<void> {
  const failed = answer.outcome === 'failed' ? answer : null;
  const ended = await tx.query(
    `update build set verdict = $2, reason = $3, failed_step = $4, inputs = $5, answered_at = $6, built_by = $7, provenance = $8, log = $9, steps = $10
     where id = $1 and verdict is null returning id`,
    [
      answer.request,
      answer.outcome,
      failed === null ? null : toText(failed.reason),
      failed?.step ?? null,
      toJson(answer.inputs),
      now,
      answer.builder,
      answer.outcome === 'fit' ? answer.provenance : null,
      answer.log,
      toJson(answer.steps),
    ],
  );
  if (ended.length === 0) return;
  if (answer.outcome === 'fit') await keepArtifacts(tx, answer);
  await endAnswered(tx, answer.request, now);
  await tx.query('select settle_effective(array[$1])', [asked.module]);
}

/** The first fit build of a closure made its artifacts; another digest from a later one is an observation. */
async function keepArtifacts(tx: Db, answer: Extract<BuildAnswer, { outcome: 'fit' }>): Promise<void> {
  await tx.query(
    `insert into artifact (build_id, name, kind, repository, digest, blob, size)
     select $1, a.name, a.kind, a.repository, a.digest, a.blob, a.size
     from jsonb_to_recordset($2::jsonb) a (name text, kind text, repository text, digest text, blob text, size bigint)
     on conflict do nothing`,
    [answer.request, toJson(answer.artifacts)],
  );
  await tx.query(
    `update build b set not_reproducible = true
     where b.id = $1 and b.try_number > 1 and exists (
       select from artifact mine
       join build other on other.module = b.module and other.closure = b.closure and other.verdict = 'fit' and other.id <> b.id
       join artifact theirs on theirs.build_id = other.id and theirs.name = mine.name
       where mine.build_id = b.id and theirs.digest <> mine.digest)`,
    [answer.request],
  );
}

/** The whole log is in the registry by now. */
async function endAnswered(tx: Db, request: string, now: Date): Promise<void> {
  await tx.query(
    `with quiet as (delete from log_line where request_id = $1)
     update request set state = 'answered', answered_at = $2, trouble_reason = null, trouble_since = null, retry_at = null where id = $1`,
    [request, now],
  );
}

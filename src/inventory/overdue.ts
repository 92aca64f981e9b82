import type { Times } from '../domain/times';
import type { Db } from './db';
import { OUTCOME, ROUTING_KEY } from './requests';
import { endStopped, type Retry, tryAgain } from './retry';

export interface OverdueRequests {
  /** Taken without a beat: already set to be tried again; fail their activities retryably. */
  readonly lost: readonly Retry[];
  /** Ought to have been published and were not: fail their activities retryably. */
  readonly unpublished: ReadonlyArray<Retry & { readonly overdueMs: number }>;
  /** Ended, and not yet marked completed: complete their activities, then markCompleted. */
  readonly ended: ReadonlyArray<{ readonly module: string; readonly request: string; readonly outcome: string }>;
  /** Published, not claimed, though an idle builder for them beats: publish again as given. */
  readonly unclaimed: ReadonlyArray<{
    readonly module: string;
    readonly request: string;
    readonly attempt: number;
    readonly routingKey: string;
    readonly body: object;
  }>;
}

/** More than this in one pass waits for the next one. */
const MOST = 2_000;

/**
 * The pass over requests that nobody tells us about: set-based, whatever their number.
 * @param heardSince since when beats would have been taken in: a builder is silent only while somebody listens.
 */
export async function overdueRequests(db: Db, now: Date, times: Times, heardSince: Date = new Date(0)): Promise<OverdueRequests> {
  return db.transaction(async (tx) => {
    const silent = await tx.query<{ request: string; attempt: number; builder: string; isStopping: boolean; beat: string }>(
      `select id as request, attempt, taken_by as builder, stop_reason is not null as "isStopping", to_char(beat_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"') as beat
       from request where state = 'taken' and greatest(beat_at, $4) < $1::timestamptz - $2 * interval '1 millisecond'
       order by id limit $3 for update skip locked`,
      [now, times.builderLost, MOST, heardSince],
    );
    const stopped = silent.filter((one) => one.isStopping).map((one) => one.request);
    if (stopped.length > 0) await endStopped(tx, stopped, now);
    const gone = silent.filter((one) => !one.isStopping);
    const lost =
      gone.length === 0
        ? []
        : await tryAgain(
            tx,
            gone.map((one) => ({ ...one, reason: `${one.builder} was lost: no beat since ${one.beat}` })),
            now,
            times,
          );
    const unclaimed = await tx.query<OverdueRequests['unclaimed'][number]>(
      `update request r set published_at = $1
       where state = 'published' and published_at < $1::timestamptz - $2 * interval '1 millisecond'
         and exists (select from builder b where b.last_beat_at > $1::timestamptz - $3 * interval '1 millisecond' and b.busy = '[]' and (r.kind = 'inspect' or r.platform = any (b.platforms)))
       returning module, id as request, attempt, ${ROUTING_KEY} as "routingKey", body || jsonb_build_object('attempt', attempt) as body`,
      [now, times.unclaimed, times.builderLost],
    );
    return { lost, unclaimed, unpublished: await unpublished(tx, now, times), ended: await ended(tx) };
  });
}

async function unpublished(tx: Db, now: Date, times: Times): Promise<Array<OverdueRequests['unpublished'][number]>> {
  return tx.query(
    `select module, id as request, coalesce(trouble_reason, 'it was not published') as reason, 0 as "delayMs",
       1000 * extract(epoch from $1::timestamptz - greatest(requested_at, retry_at))::float8 as "overdueMs"
     from request where state = 'requested' and greatest(requested_at, retry_at) < $1::timestamptz - $2 * interval '1 millisecond'
     order by requested_at limit $3`,
    [now, times.unpublished, MOST],
  );
}

async function ended(tx: Db): Promise<Array<OverdueRequests['ended'][number]>> {
  return tx.query(
    `select module, id as request, ${OUTCOME} as outcome from request r where state in ('answered', 'cancelled') and completed_at is null order by id limit $1`,
    [MOST],
  );
}

/** The activities of these requests have been completed. */
export async function markCompleted(db: Db, requestIds: readonly string[]): Promise<void> {
  await db.query('update request set completed_at = now() where id = any ($1) and completed_at is null', [requestIds]);
}

import type { Times } from '../domain/times';
import type { Db } from './db';

export interface Retry {
  readonly module: string;
  readonly request: string;
  readonly reason: string;
  readonly delayMs: number;
}

/**
 * Ends attempts that the environment ended: never a verdict, tried again with capped backoff, with the since of the
 * first. After three in a row while builders end other work it is suspect and tried seldom.
 */
export async function tryAgain(
  db: Db,
  ended: ReadonlyArray<{ readonly request: string; readonly attempt: number; readonly reason: string }>,
  now: Date,
  times: Times,
): Promise<Retry[]> {
  return db.query<{ module: string; request: string; reason: string; delayMs: number }>(
    `with ended as (
       select r.id, e.reason,
         case when r.lost_attempts >= 2 and exists (select from request other where other.state = 'answered' and other.answered_at > r.trouble_since) then $5
           else least($3 * 2 ^ least(r.lost_attempts, 30), $4) end as delay_ms
       from unnest($1::text[], $6::int[], $7::text[]) e (request, attempt, reason)
       join request r on r.id = e.request and r.attempt = e.attempt and r.state in ('requested', 'published', 'taken')
     )
     update request r set
       attempt = r.attempt + 1, state = 'requested', lost_attempts = r.lost_attempts + 1,
       published_at = null, taken_at = null, taken_by = null, beat_at = null, progress_at = null, step = null,
       trouble_reason = e.reason, trouble_since = coalesce(r.trouble_since, $2),
       retry_at = $2::timestamptz + e.delay_ms * interval '1 millisecond'
     from ended e where r.id = e.id
     returning r.module, r.id as request, e.reason, e.delay_ms::float8 as "delayMs"`,
    [
      ended.map((one) => one.request),
      now,
      times.retryFirst,
      times.retryMost,
      times.stuckAfter,
      ended.map((one) => one.attempt),
      ended.map((one) => one.reason),
    ],
  );
}

/** Ends requests that were told to stop. A build that an operator stopped has failed by that decision. */
export async function endStopped(db: Db, ids: readonly string[], now: Date): Promise<void> {
  await db.query(
    `with stopped as (
       update request set state = 'cancelled', answered_at = $2 where id = any ($1) and state in ('requested', 'published', 'taken') returning id, stop_reason, stopped_by
     ), quiet as (
       delete from log_line l using stopped s where l.request_id = s.id
     )
     update build b set verdict = 'failed', reason = s.stop_reason, failed_step = 'cancelled', answered_at = $2
     from stopped s where b.id = s.id and s.stopped_by is not null and b.verdict is null`,
    [ids, now],
  );
}

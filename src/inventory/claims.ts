import type { BuilderBeat, Claim, ClaimReply } from '../schema/messages';
import type { Db } from './db';
import { toJson } from './text';

/** Atomic: of all who claim an attempt exactly one gets `go`, and the same one again. */
export async function claimRequest(db: Db, claim: Claim, now: Date): Promise<ClaimReply> {
  const taken = await db.query(
    `update request set
       state = 'taken', taken_by = $3, beat_at = $4,
       taken_at = case when state = 'taken' then taken_at else $4 end,
       progress_at = case when state = 'taken' then progress_at else $4 end
     where id = $1 and attempt = $2 and stop_reason is null and (state in ('requested', 'published') or state = 'taken' and taken_by = $3)
     returning id`,
    [claim.request, claim.attempt, claim.builder, now],
  );
  if (taken.length > 0) return { v: 1, answer: 'go', reason: '' };
  const [row] = await db.query<{ reason: string }>(
    `select case
       when stop_reason is not null then stop_reason
       when state = 'answered' then 'it has been answered'
       when attempt <> $2 then 'attempt ' || $2::int || ' is over: it is at attempt ' || attempt
       else 'taken by ' || coalesce(taken_by, 'another') end as reason
     from request where id = $1`,
    [claim.request, claim.attempt],
  );
  return { v: 1, answer: 'drop', reason: row?.reason ?? 'there is no such request' };
}

/** Set-based: the builders' rows and the requests they are at. */
export async function beatRequests(db: Db, beats: readonly BuilderBeat[], now: Date): Promise<void> {
  if (beats.length === 0) return;
  const newest = [...new Map(beats.map((beat) => [beat.builder, beat])).values()];
  await db.query(
    `with beat as (
       select * from jsonb_to_recordset($1::jsonb) b (builder text, platforms text[], "publicKey" text, version text, busy jsonb)
     ), seen as (
       insert into builder (name, platforms, public_key, version, last_beat_at, busy)
       select builder, platforms, "publicKey", version, $2, busy from beat
       on conflict (name) do update set platforms = excluded.platforms, public_key = excluded.public_key, version = excluded.version,
         last_beat_at = excluded.last_beat_at, busy = excluded.busy
     )
     update request r set beat_at = $2, step = w.step, progress_at = case when r.step is distinct from w.step then $2 else r.progress_at end
     from beat b, jsonb_to_recordset(b.busy) w (request text, attempt int, step text)
     where r.id = w.request and r.attempt = w.attempt and r.state = 'taken' and r.taken_by = b.builder`,
    [toJson(newest), now],
  );
}

import type { LogLines } from '../schema/messages';
import type { Db } from './db';
import { toJson } from './text';

export interface LogCursor {
  readonly attempt: number;
  /** The number of the next line. */
  readonly number: number;
}

export interface LogPart {
  readonly request: string;
  readonly module: string;
  readonly kind: 'inspect' | 'build';
  readonly commit: string;
  readonly state: 'requested' | 'published' | 'taken' | 'answered' | 'cancelled';
  readonly verdict: string | null;
  /** Digest of the whole log in the registry, once it was answered. */
  readonly log: string | null;
  readonly lines: ReadonlyArray<{ readonly attempt: number; readonly number: number; readonly text: string }>;
  readonly next: LogCursor;
}

/** Of a request: the newest lines, for following it. */
const KEPT = 5_000;
const PAGE = 1_000;

/** Lines of requests that have ended are dropped: the registry has the whole log. */
export async function appendLog(db: Db, messages: readonly LogLines[]): Promise<void> {
  if (messages.length === 0) return;
  const values = toJson(messages);
  await db.transaction(async (tx) => {
    const open = await tx.query<{ id: string }>(
      `with said as (
         select m.request, m.attempt, m.from + l.ordinality - 1 as number, l.value as text
         from jsonb_to_recordset($1::jsonb) m (request text, attempt int, "from" bigint, lines jsonb), jsonb_array_elements_text(m.lines) with ordinality l
       ), kept as (
         insert into log_line (request_id, attempt, number, text)
         select s.request, s.attempt, s.number, s.text from said s join request r on r.id = s.request and r.state not in ('answered', 'cancelled')
         on conflict do nothing
         returning request_id
       )
       select distinct request_id as id from kept`,
      [values],
    );
    await tx.query(
      `delete from log_line l using (
         select request_id, attempt, max(number) as newest from log_line where request_id = any ($1) group by request_id, attempt
       ) top
       where l.request_id = top.request_id and (l.attempt = top.attempt and l.number <= top.newest - $2 or l.attempt < top.attempt - 1)`,
      [open.map((one) => one.id), KEPT],
    );
  });
}

/** At most 1,000 lines from the cursor on (null: from the first kept one); null when there is no such request. */
export async function readLog(db: Db, requestId: string, from: LogCursor | null): Promise<LogPart | null> {
  const start = from ?? { attempt: 0, number: 0 };
  const [row] = await db.query<Omit<LogPart, 'next'>>(
    `select r.id as request, r.module, r.kind, r.commit, r.state, b.verdict, b.log, lines.page as lines
     from request r
     left join build b on b.id = r.id
     cross join lateral (
       select coalesce(jsonb_agg(jsonb_build_object('attempt', l.attempt, 'number', l.number, 'text', l.text) order by l.attempt, l.number), '[]') as page
       from (
         select * from log_line l where l.request_id = r.id and (l.attempt, l.number) >= ($2::int, $3::int) order by l.attempt, l.number limit $4
       ) l
     ) lines
     where r.id = $1`,
    [requestId, start.attempt, start.number, PAGE],
  );
  if (row === undefined) return null;
  const last = row.lines.at(-1);
  return { ...row, next: last === undefined ? start : { attempt: last.attempt, number: last.number + 1 } };
}

/**
 * The request of a module that its line speaks of: a build that runs, else the one whose verdict counts, which is an old one where
 * inputs are again what they were, else the newest; of the given id or start of a commit where one is given.
 */
export async function latestRequest(db: Db, module: string, ref: string | null): Promise<string | null> {
  const [row] = await db.query<{ id: string }>(
    `with judged as materialized (
       select b.id from module m join build b on b.module = m.name and b.closure = m.closure and b.verdict is not null
       where m.name = $1 order by b.try_number desc, b.id desc limit 1
     )
     select id from request where module = $1 and ($2::text is null or id = $2 or starts_with(commit, $2))
     order by (kind = 'build' and state = 'taken') desc, id in (select id from judged) desc, kind = 'build' desc, requested_at desc, id desc limit 1`,
    [module, ref],
  );
  return row?.id ?? null;
}

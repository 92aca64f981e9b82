import type { Db } from './db';

/** Of each node. */
const REPORTS = 20;
const DECLARATIONS = 10;
/** Of each request. */
const ANSWERS = 20;

/** Bounds what only grows, wherever a write did not: reports, declarations, answers, lines of logs. For an hourly pass. */
export async function prune(db: Db): Promise<void> {
  await db.query(
    `delete from report r using (
       select node, epoch, number, row_number() over (partition by node order by received_at desc, number desc) as place from report
     ) old
     where old.place > $1 and r.node = old.node and r.epoch = old.epoch and r.number = old.number`,
    [REPORTS],
  );
  await db.query(
    `delete from declaration d using (
       select node, sequence, max(sequence) over (partition by node) as newest,
         row_number() over (partition by node, confirmed_at is not null order by sequence desc) as place, confirmed_at is not null as is_confirmed
       from declaration
     ) old
     where d.node = old.node and d.sequence = old.sequence and old.sequence <> old.newest and not (old.is_confirmed and old.place <= $1)`,
    [DECLARATIONS],
  );
  // Attempts that the environment ended are without end; what they said lately is enough.
  await db.query(
    `delete from answer a using request r where r.id = a.request_id and a.attempt <= r.attempt - $1 and a.body ->> 'outcome' = 'environment'`,
    [ANSWERS],
  );
  await db.query(`delete from log_line l using request r where r.id = l.request_id and r.state in ('answered', 'cancelled')`);
}

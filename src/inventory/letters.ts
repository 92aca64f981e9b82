import type { Db } from './db';
import { toText } from './text';

const KEPT = 1_000;

/** What nobody could take in, with the reason. Kept bounded: the newest thousand. */
export async function recordDeadLetter(db: Db, letter: { readonly queue: string; readonly reason: string; readonly body: string }): Promise<void> {
  await db.query(
    `with kept as (
       insert into dead_letter (queue, reason, body) values ($1, $2, $3) returning id
     )
     delete from dead_letter d using kept where d.id <= kept.id - $4`,
    [letter.queue, toText(letter.reason), toText(letter.body), KEPT],
  );
}

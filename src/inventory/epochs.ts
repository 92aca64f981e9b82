import type { Db } from './db';

/** Of a node: a late report of one of these is not taken for a new beginning. */
const REMEMBERED = 20;

/**
 * A host that was installed anew begins an epoch: what it said before holds no longer, and it has received nothing.
 * Epochs that are current or past change nothing.
 */
export async function beginEpochs(tx: Db, begun: ReadonlyArray<{ readonly node: string; readonly epoch: string }>, now: Date): Promise<void> {
  if (begun.length === 0) return;
  await tx.query(
    `with begun as (
       update node n set
         past_epochs = (case when n.epoch is null then n.past_epochs else n.epoch || n.past_epochs end)[1:$4],
         epoch = e.epoch, epoch_since = $3, epochs = n.epochs + 1, last_number = 0, lagging_beats = 0,
         received_sequence = 0, received_digest = null, applied_sequence = 0, applied_digest = null,
         refused_sequence = null, refused_reason = null, refused_since = null,
         send_again = n.send_again or n.epoch is not null and n.sent_sequence is not null
       from unnest($1::text[], $2::text[]) e (node, epoch)
       where n.name = e.node and n.epoch is distinct from e.epoch and e.epoch <> all (n.past_epochs)
       returning n.name
     )
     update placement p set applied_build = null, applied_digest = null, applied_at = null, applied_sequence = null,
       failing_resources = null, failing_count = 0, failing_since = null, failing_message = null
     from begun b where p.node = b.name and (p.applied_digest is not null or p.failing_resources is not null)`,
    [begun.map((one) => one.node), begun.map((one) => one.epoch), now, REMEMBERED],
  );
}

import { ulid } from 'ulid';
import { UsageError } from '../domain/errors';
import type { Times } from '../domain/times';
import type { NodeBeat } from '../schema/messages';
import type { Db } from './db';
import { beginEpochs } from './epochs';
import { type Intent, providersOf, refuseIfNeeded } from './placing';
import { lockProvisioning, refreshProviders } from './provisioning';
import { toJson } from './text';

/** UsageError when the name is taken. */
export async function addNode(
  db: Db,
  node: { readonly name: string; readonly site: string; readonly facts: Readonly<Record<string, string>>; readonly brokerUser: string },
): Promise<void> {
  const added = await db.query('insert into node (name, site, facts, broker_user) values ($1, $2, $3, $4) on conflict do nothing returning name', [
    node.name,
    node.site,
    JSON.stringify(node.facts),
    node.brokerUser,
  ]);
  if (added.length === 0) throw new UsageError(`node ${node.name} exists already: tally node show ${node.name}`);
}

/**
 * UsageError, and nothing is done, where others need what is there.
 * @param revoke takes its account away; where that fails the node is as it was, and can be removed again.
 */
export async function removeNode(db: Db, name: string, { who, why }: Intent, revoke: (brokerUser: string) => Promise<void>): Promise<void> {
  await db.transaction(async (tx) => {
    await lockProvisioning(tx);
    await refuseIfNeeded(tx, { module: null, node: name });
    const providers = await providersOf(tx, { module: null, node: name });
    const [removed] = await tx.query<{ brokerUser: string }>('delete from node where name = $1 returning broker_user as "brokerUser"', [name]);
    if (removed === undefined) throw new UsageError(`there is no node ${name}: tally node list`);
    await refreshProviders(tx, providers);
    await tx.query(`insert into intent (id, verb, node, who, why) values ($1, 'node remove', $2, $3, $4)`, [ulid(), name, who, why]);
    await revoke(removed.brokerUser);
  });
}

export async function listNodes(db: Db): Promise<
  Array<{
    readonly name: string;
    readonly site: string;
    readonly facts: Readonly<Record<string, string>>;
    readonly brokerUser: string;
    readonly publicKey: string | null;
  }>
> {
  return db.query('select name, site, facts, broker_user as "brokerUser", public_key as "publicKey" from node order by name');
}

/** The keys that were refused are the node's from now on: its host was installed anew. UsageError when none was refused. */
export async function trustKey(db: Db, name: string, { who, why }: Intent): Promise<void> {
  await db.transaction(async (tx) => {
    const trusted = await tx.query(
      'update node set public_key = key_refused, seal_key = seal_key_refused, key_refused = null, seal_key_refused = null where name = $1 and key_refused is not null returning name',
      [name],
    );
    if (trusted.length === 0) throw new UsageError(`${name} came with no other key than the one that is trusted: tally node show ${name}`);
    await tx.query(`insert into intent (id, verb, node, who, why) values ($1, 'node trust', $2, $3, $4)`, [ulid(), name, who, why]);
  });
}

/** Whoever came with another key had the credentials before, and is shut out with them. */
export async function recordRenewal(db: Db, name: string, brokerUser: string, { who, why }: Intent): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query('update node set broker_user = $2, key_refused = null, seal_key_refused = null where name = $1', [name, brokerUser]);
    await tx.query(`insert into intent (id, verb, node, who, why) values ($1, 'node renew', $2, $3, $4)`, [ulid(), name, who, why]);
  });
}

/** By node: its key, null while none has been taken yet. A name that is missing is no node. */
export async function nodeKeys(db: Db, names: readonly string[]): Promise<Map<string, string | null>> {
  const rows = await db.query<{ name: string; key: string | null }>('select name, public_key as key from node where name = any ($1)', [names]);
  return new Map(rows.map((row) => [row.name, row.key]));
}

/** So many beats in a row that name another declaration than the one sent, and it is sent again. */
const LAG = 2;
/** A node whose word of what it applied is missing is asked for it again at most this often. */
const ASKED_AGAIN_MS = 60_000;

/** Set-based; the first keys of a node are taken, others later are refused and the beat with them. A host of before brings no key to seal to. */
export async function recordNodeBeats(db: Db, beats: readonly NodeBeat[], now: Date, times: Times): Promise<{ readonly refused: readonly string[] }> {
  if (beats.length === 0) return { refused: [] };
  const newest = [...new Map(beats.map((beat) => [beat.node, beat])).values()];
  return db.transaction(async (tx) => {
    const known = await tx.query<{ name: string; isOurs: boolean; isLate: boolean }>(
      `select n.name, coalesce(n.public_key = b.key, true) and coalesce(n.seal_key = b.seal_key, true) as "isOurs", b.epoch = any (n.past_epochs) as "isLate"
       from unnest($1::text[], $2::text[], $3::text[], $4::text[]) b (node, key, seal_key, epoch) join node n on n.name = b.node
       order by n.name for no key update of n`,
      [...keysOf(newest), newest.map((beat) => beat.epoch)],
    );
    const refused = known.filter((node) => !node.isOurs).map((node) => node.name);
    if (refused.length > 0)
      await refuseKeys(
        tx,
        newest.filter((beat) => refused.includes(beat.node)),
      );
    const good = new Set(known.filter((node) => node.isOurs && !node.isLate).map((node) => node.name));
    const taken = newest.filter((beat) => good.has(beat.node));
    await beginEpochs(tx, taken, now);
    await takeBeats(tx, taken, now, times);
    return { refused };
  });
}

async function refuseKeys(tx: Db, beats: readonly NodeBeat[]): Promise<void> {
  await tx.query(
    `update node n set key_refused = b.key, seal_key_refused = b.seal_key from unnest($1::text[], $2::text[], $3::text[]) b (node, key, seal_key)
     where n.name = b.node and (n.key_refused, n.seal_key_refused) is distinct from (b.key, b.seal_key)`,
    keysOf(beats),
  );
}

function keysOf(beats: readonly NodeBeat[]): [string[], string[], Array<string | null>] {
  return [beats.map((beat) => beat.node), beats.map((beat) => beat.publicKey), beats.map((beat) => beat.sealKey ?? null)];
}

async function takeBeats(tx: Db, beats: readonly NodeBeat[], now: Date, times: Times): Promise<void> {
  // A node that comes back is news for the modules that wait for it; the beats of the others are not.
  await tx.query(
    `select bump_modules(array(
       select distinct p.module from node n join placement p on p.node = n.name
       where n.name = any ($1) and coalesce(n.last_beat_at, n.added_at) + $3 * interval '1 millisecond' <= $2::timestamptz and p.build_id is not null and not p.is_applied))`,
    [beats.map((beat) => beat.node), now, times.hostAway],
  );
  await tx.query(
    `with said as (
       select n.name, b.*, n.sent_sequence is not null and (
         -- What it refused it is not sent again, unless it knows a higher sequence than the store: then a higher one is what it needs.
         (n.refused_sequence is distinct from n.sent_sequence or (b.received ->> 'sequence')::bigint >= n.sent_sequence)
           and ((b.received ->> 'sequence')::bigint, b.received ->> 'digest') is distinct from (n.sent_sequence, n.sent_digest)
         -- It is through with what it was sent and no word of that is here, nor is one to come: a host reports once.
         or n.sent_at <= $2::timestamptz - $4 * interval '1 millisecond' and exists (
           select from placement p where p.node = n.name and not p.is_applied and p.want_build = p.build_id and p.failing_resources is null
             and p.want_sequence <= (b.applied ->> 'sequence')::bigint)) as is_lagging
       from jsonb_to_recordset($1::jsonb) b (node text, "publicKey" text, "sealKey" text, "hostVersion" text, reads jsonb, received jsonb, applied jsonb)
       join node n on n.name = b.node
     )
     update node n set
       last_beat_at = $2,
       public_key = coalesce(n.public_key, s."publicKey"),
       seal_key = coalesce(n.seal_key, s."sealKey"),
       host_version = s."hostVersion",
       reads = s.reads,
       received_sequence = coalesce((s.received ->> 'sequence')::bigint, 0),
       received_digest = s.received ->> 'digest',
       applied_sequence = coalesce((s.applied ->> 'sequence')::bigint, 0),
       applied_digest = s.applied ->> 'digest',
       lagging_beats = case when s.is_lagging and n.lagging_beats + 1 < $3 then n.lagging_beats + 1 else 0 end,
       send_again = n.send_again or s.is_lagging and n.lagging_beats + 1 >= $3
     from said s where n.name = s.name`,
    [toJson(beats), now, LAG, ASKED_AGAIN_MS],
  );
}

/** What nodes say. Counted only for the node whose account sent it over its own exchange and whose key signed it. */
import { nodeKeys, recordNodeBeats } from '../inventory/nodes';
import { recordReports } from '../inventory/reports';
import { type Consumer, type Delivery, nodeExchange, QUEUES, VerificationError, verify } from '../link';
import { type Envelope, envelope, NODE_MESSAGE_TYPE, type NodeBeat, type NodeReport, nodeBeat, nodeReport } from '../schema/messages';
import { createBatches } from './batches';
import type { ControlDeps } from './deps';
import { consumeBatches, consumeTaking, dead, type Read, type Refusal, readBody, readValue, storingBatches } from './reading';

/** 2,000 reports a second are ten batches; a single one waits for no other longer than this. */
const REPORTS = { most: 200, afterMs: 50 };
const OPEN_AFTER_MS = 5;
const BEATS = { most: 500, afterMs: 100 };

/** In an envelope, on the node's own exchange, by its own account: who sent it, before what it says is believed. */
interface Signed {
  readonly node: string;
  readonly envelope: Envelope;
}

/** A node whose key is not known yet has this long to bring it by a beat; its reports are dead letters afterwards. */
const KEY_WITHIN_MS = 60_000;

export async function consumeReports(deps: ControlDeps): Promise<Consumer> {
  const { db, link, now } = deps;
  const keylessSince = new Map<string, number>();

  function whileKeyless(node: string): Refusal {
    const since = keylessSince.get(node) ?? Date.now();
    keylessSince.set(node, since);
    const isLate = Date.now() - since > KEY_WITHIN_MS;
    return { kind: isLate ? 'dead' : 'later', reason: `the key of ${node} is not known: no beat of it has arrived` };
  }

  // The next batch is verified while this one is stored.
  const opening = createBatches<Signed, { readonly report: NodeReport } | Refusal>({
    most: REPORTS.most,
    afterMs: OPEN_AFTER_MS,
    store: async (batch) => {
      const keys = await nodeKeys(db, [...new Set(batch.map(({ node }) => node))]);
      return batch.map((signed) => {
        const key = keys.get(signed.node);
        if (key === undefined) return dead(`there is no node ${signed.node}`);
        if (key === null) return whileKeyless(signed.node);
        keylessSince.delete(signed.node);
        const read = openReport(signed, key);
        return 'reason' in read ? dead(read.reason) : { report: read.value };
      });
    },
  });
  const storing = storingBatches<NodeReport>(REPORTS.most, REPORTS.afterMs, async (reports) => {
    await recordReports(db, reports, now());
  });
  return await consumeTaking(link, {
    queue: QUEUES.reports,
    prefetch: REPORTS.most * 3,
    take: async (delivery) => {
      const signed = readSigned(deps, delivery);
      if ('reason' in signed) return dead(signed.reason);
      const opened = await opening.add(signed.value);
      return 'report' in opened ? await storing.add(opened.report) : opened;
    },
  });
}

function openReport(signed: Signed, key: string): Read<NodeReport> {
  const opened = openWith(signed, key);
  if ('reason' in opened) return opened;
  const read = readValue(opened.value, nodeReport);
  if ('reason' in read) return read;
  return read.value.node === signed.node ? read : { reason: `${signed.node} sent a report about ${read.value.node}` };
}

/** The first key that a node shows is taken, another one later is refused: that is the inventory's to tell. */
export async function consumeNodeBeats(deps: ControlDeps): Promise<Consumer> {
  const { db, link, now, times, log } = deps;
  return await consumeBatches<NodeBeat>(link, {
    queue: QUEUES.nodeBeats,
    ...BEATS,
    read: (delivery) => {
      const signed = readSigned(deps, delivery);
      return 'reason' in signed ? signed : openBeat(signed.value);
    },
    store: async (beats) => {
      const { refused } = await recordNodeBeats(db, beats, now(), times);
      for (const node of refused) log.warn({ node }, 'a beat is signed by another key than the one that was taken first: it is refused');
    },
  });
}

function openBeat(signed: Signed): Read<NodeBeat> {
  const claimed = readValue(payloadOf(signed.envelope), nodeBeat);
  if ('reason' in claimed) return claimed;
  if (claimed.value.node !== signed.node) return { reason: `${signed.node} sent a beat of ${claimed.value.node}` };
  // Whoever shows a key must hold it.
  const opened = openWith(signed, claimed.value.publicKey);
  return 'reason' in opened ? opened : claimed;
}

function readSigned({ accountOfNode }: ControlDeps, delivery: Delivery): Read<Signed> {
  const prefix = nodeExchange('');
  if (!delivery.exchange.startsWith(prefix))
    return { reason: `it did not come over a node's exchange but over ${delivery.exchange || 'the default one'}` };
  const node = delivery.exchange.slice(prefix.length);
  if (delivery.userId !== accountOfNode(node))
    return { reason: `it came over the exchange of ${node} by the account ${delivery.userId ?? '(none said)'}` };
  const read = readBody(delivery, envelope);
  return 'reason' in read ? read : { value: { node, envelope: read.value } };
}

function openWith({ node, envelope: sealed }: Signed, publicKey: string): Read<unknown> {
  try {
    return { value: verify(sealed, [publicKey], NODE_MESSAGE_TYPE) };
  } catch (error) {
    if (error instanceof VerificationError) return { reason: `it is not signed by ${node}: ${error.message}` };
    throw error;
  }
}

function payloadOf(sealed: Envelope): unknown {
  try {
    return JSON.parse(Buffer.from(sealed.payload, 'base64').toString('utf8'));
  } catch {
    return null;
  }
}

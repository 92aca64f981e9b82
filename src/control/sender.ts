/** Sends declarations to nodes. A node is sent to, never a module: many changes become one send, and a node that is off holds nobody up. */
import { EnvironmentError, UsageError } from '../domain/errors';
import { nodesToSend, prepareSend, recordSendFailure, recordSent } from '../inventory/sending';
import { canonicalDigest, declareNode, nodeQueue, sign, UnroutableError } from '../link';
import { DECLARATION_TYPE, type Declaration } from '../schema/declaration';
import type { ControlDeps } from './deps';
import { forEachLimited } from './limit';
import { type Loop, startLoop } from './loop';

const AT_A_TIME = 32;
const MOST_A_PASS = 500;
/** A query of a partial index that is empty when there is nothing to send. */
const EVERY_MS = 250;
const CONFIRM_WITHIN_MS = 10_000;

export function startSender(deps: ControlDeps): Loop {
  return startLoop({
    name: 'sender',
    log: deps.log,
    pauseMs: (found) => (found >= MOST_A_PASS ? 0 : EVERY_MS),
    pass: async () => {
      const nodes = await nodesToSend(deps.db, MOST_A_PASS, deps.now());
      await forEachLimited(nodes, AT_A_TIME, async (node) => await sendTo(deps, node));
      return nodes.length;
    },
  });
}

/** Recorded as sent only what the broker confirmed; a sequence that was not confirmed is not used again. */
async function sendTo(deps: ControlDeps, node: string): Promise<void> {
  const { db, now, times, log, sealing } = deps;
  try {
    const prepared = await prepareSend(db, node, { digest: canonicalDigest, sealing }, now());
    if (prepared.kind !== 'send') return;
    const { declaration } = prepared;
    try {
      await publish(deps, node, declaration);
    } catch (error) {
      if (!(error instanceof EnvironmentError)) throw error;
      await recordSendFailure(db, node, error.message, now(), times);
      return;
    }
    await recordSent(db, node, declaration.sequence, declaration.digest, now());
  } catch (error) {
    log.warn({ node, err: error }, 'sending failed; the node stays behind and is sent to again');
    // A key file that is another one, say: it does not pass by itself, so whoever asks about the node is told.
    if (error instanceof UsageError) await recordSendFailure(db, node, error.message, now(), times);
  }
}

async function publish({ link, signingKey }: ControlDeps, node: string, declaration: Declaration): Promise<void> {
  const envelope = sign(DECLARATION_TYPE, declaration, signingKey.privateKey);
  try {
    await link.publish('', nodeQueue(node), envelope, { timeoutMs: CONFIRM_WITHIN_MS });
  } catch (error) {
    // The broker lost the node's queue: it is there for the next try, and this one failed.
    if (error instanceof UnroutableError) await declareNode(link, node);
    throw error;
  }
}

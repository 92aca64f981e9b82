/** Reports that a node never made, sent with the accounts of a node: none of them may be taken in. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateKeyPair, nodeExchange, openLink, ROUTES, sign } from '../../src/link';
import { NODE_MESSAGE_TYPE, type NodeReport } from '../../src/schema/messages';
import type { WholeMesh } from './mesh';

let forged = 0;

export async function forgeReports(whole: WholeMesh, nodes: readonly string[]): Promise<void> {
  const [own, other] = nodes;
  if (own === undefined || other === undefined) throw new Error('forging takes two nodes');
  const { amqpUrl } = JSON.parse(readFileSync(join(whole.local.places.home, 'nodes', `${own}.json`), 'utf8')) as { amqpUrl: string };
  const link = await openLink({ url: amqpUrl, name: 'forger' });
  const { privateKey } = generateKeyPair();
  const ownKey = readFileSync(join(whole.local.places.nodes, own, 'state', 'node.key'), 'utf8');
  const said = (node: string): NodeReport => {
    forged += 1;
    return {
      v: 1,
      type: 'report',
      node,
      epoch: `forged-${forged}`,
      number: 1_000_000,
      at: new Date().toISOString(),
      declaration: null,
      modules: [],
      removed: [],
      refused: null,
    };
  };
  try {
    // By its own way and with its own key in the other's name; in its own name with another key; and by the other's way.
    await link.publish(nodeExchange(own), ROUTES.report, sign(NODE_MESSAGE_TYPE, said(other), ownKey), { timeoutMs: 2_000 });
    await link.publish(nodeExchange(own), ROUTES.report, sign(NODE_MESSAGE_TYPE, said(own), privateKey), { timeoutMs: 2_000 });
    await link.publish(nodeExchange(other), ROUTES.report, sign(NODE_MESSAGE_TYPE, said(other), privateKey), { timeoutMs: 2_000 }).then(
      () => {
        throw new Error(`the broker let ${own} write to the exchange of ${other}`);
      },
      () => undefined,
    );
  } finally {
    await link.close();
  }
}

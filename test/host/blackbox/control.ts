/** A control plane that only sends declarations and listens to one node, on a vhost of its own. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  declareNode,
  declareTopology,
  ensureNodeAccount,
  findManagement,
  generateKeyPair,
  type KeyPair,
  type Link,
  nodeQueue,
  openLink,
  QUEUES,
  sign,
  verify,
} from '../../../src/link';
import { packDirectory } from '../../../src/pack';
import { createRegistryClient, pushArtifact } from '../../../src/registry';
import { type ArtifactRef, DECLARATION_TYPE, type DeclaredResource } from '../../../src/schema/declaration';
import { envelope, NODE_MESSAGE_TYPE, type NodeBeat, type NodeReport, nodeBeat, nodeReport } from '../../../src/schema/messages';
import { eventually } from '../../support/eventually';
import { freshVhost, registryUrl } from '../../support/servers';
import { declarationOf, type Machine, MESH, NODE } from './machine';

export interface Control {
  readonly link: Link;
  readonly key: KeyPair;
  readonly credentials: string;
  readonly beats: NodeBeat[];
  /** In the order in which they came, redelivered ones too. */
  readonly reports: NodeReport[];
  readonly user: string;
  send(resources: readonly DeclaredResource[], sequence: number): Promise<void>;
  sendRaw(body: object): Promise<void>;
  /** The newest report that the condition holds for. */
  report(condition: (report: NodeReport) => boolean, timeoutMs?: number): Promise<NodeReport>;
  applied(sequence: number): Promise<NodeReport>;
  /** Cuts every connection of the node, as a network does. */
  cut(): Promise<void>;
  close(): Promise<void>;
}

export async function startControl(machine: Machine): Promise<Control> {
  const vhost = await freshVhost();
  const link = await openLink({ url: vhost.amqpUrl, name: 'test control' });
  await declareTopology(link, { platforms: [] });
  const management = await findManagement(vhost.amqpUrl, vhost.managementUrl);
  const { user, password } = await ensureNodeAccount(management, NODE);
  await declareNode(link, NODE);
  const url = new URL(vhost.amqpUrl);
  Object.assign(url, { username: encodeURIComponent(user), password: encodeURIComponent(password) });
  const key = generateKeyPair();
  const credentials = join(machine.dir, 'credentials.json');
  writeFileSync(
    credentials,
    JSON.stringify({ mesh: MESH, node: NODE, amqpUrl: url.href, registryUrl: registryUrl(), meshPublicKey: key.publicKey }),
    {
      mode: 0o600,
    },
  );
  const beats: NodeBeat[] = [];
  const reports: NodeReport[] = [];
  let nodeKey: string | null = null;

  await link.consume(QUEUES.nodeBeats, { prefetch: 10 }, async (delivery) => {
    if (delivery.userId !== user) throw new Error(`a beat came as ${delivery.userId}`);
    const signed = envelope.parse(JSON.parse(delivery.body.toString()));
    const said = JSON.parse(Buffer.from(signed.payload, 'base64').toString()) as { publicKey: string };
    nodeKey ??= said.publicKey;
    beats.push(nodeBeat.parse(verify(signed, [nodeKey], NODE_MESSAGE_TYPE)));
    delivery.ack();
  });
  await link.consume(QUEUES.reports, { prefetch: 10 }, async (delivery) => {
    if (delivery.userId !== user) throw new Error(`a report came as ${delivery.userId}`);
    await eventually(() => nodeKey !== null);
    reports.push(nodeReport.parse(verify(envelope.parse(JSON.parse(delivery.body.toString())), [nodeKey ?? ''], NODE_MESSAGE_TYPE)));
    delivery.ack();
  });

  const self: Control = {
    link,
    key,
    credentials,
    beats,
    reports,
    user,
    send: (resources, sequence) => self.sendRaw(sign(DECLARATION_TYPE, declarationOf(resources, sequence), key.privateKey)),
    sendRaw: (body) => link.publish('', nodeQueue(NODE), body),
    report: (condition, timeoutMs = 20_000) =>
      eventually(
        () => {
          const found = reports.findLast(condition);
          if (found === undefined) throw new Error(`no such report among ${JSON.stringify(reports.slice(-3))}`);
          return found;
        },
        { timeoutMs },
      ),
    applied: (sequence) => self.report((report) => report.declaration?.sequence === sequence && report.refused === null),
    async cut() {
      const api = new URL(vhost.managementUrl);
      const authorization = `Basic ${Buffer.from(`${decodeURIComponent(api.username)}:${decodeURIComponent(api.password)}`).toString('base64')}`;
      Object.assign(api, { username: '', password: '' });
      const open = (await (
        await fetch(new URL(`/api/vhosts/${vhost.vhost}/connections`, api), { headers: { authorization }, signal: AbortSignal.timeout(10_000) })
      ).json()) as Array<{ name: string; user: string }>;
      for (const { name } of open.filter((one) => one.user === user)) {
        await fetch(new URL(`/api/connections/${encodeURIComponent(name)}`, api), {
          method: 'DELETE',
          headers: { authorization },
          signal: AbortSignal.timeout(10_000),
        });
      }
    },
    close: () => link.close(),
  };
  return self;
}

/** Packs a directory and pushes it as a builder does. */
export async function pushed(dir: string, work: string): Promise<ArtifactRef> {
  const path = join(work, `${randomBytes(4).toString('hex')}.tgz`);
  await packDirectory(dir, path);
  return await pushedFile(path, 'archive');
}

export async function pushedFile(path: string, kind: 'archive' | 'file'): Promise<ArtifactRef> {
  const repository = 'tally/app';
  const { digest, layer } = await pushArtifact(createRegistryClient({ url: registryUrl() }), {
    repository,
    kind,
    path,
    tag: randomBytes(6).toString('hex'),
  });
  return { repository, digest, blob: layer.digest, size: layer.size };
}

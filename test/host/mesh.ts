/** The control plane's side of the link for one node, and its host as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  declareNode,
  declareTopology,
  ensureNodeAccount,
  findManagement,
  generateKeyPair,
  nodeQueue,
  openLink,
  QUEUES,
  removeAccount,
  sign,
  verify,
} from '../../src/link';
import { DECLARATION_TYPE, type Declaration } from '../../src/schema/declaration';
import { envelope, NODE_MESSAGE_TYPE, type NodeBeat, type NodeReport, nodeBeat, nodeReport } from '../../src/schema/messages';
import { freshVhost, registryUrl } from '../support/servers';
import type { Machine } from './machine';

const NODE = 'alpha';
const root = join(__dirname, '..', '..');

export interface NodeMesh {
  readonly beats: NodeBeat[];
  /** As they came, those that came twice included. */
  readonly reports: NodeReport[];
  readonly amqpUrl: string;
  send(declaration: Declaration): Promise<void>;
  sendRaw(body: object): Promise<void>;
  /** Ends once it has ended, by whatever. */
  startHost(environment?: Record<string, string>): ChildProcess;
  kill(host: ChildProcess, signal: NodeJS.Signals): Promise<void>;
  /** Takes the node's account away, so that its host has no link, and gives it back. */
  cut(): Promise<void>;
  mend(): Promise<void>;
  close(): Promise<void>;
}

export async function nodeMesh(machine: Machine): Promise<NodeMesh> {
  const vhost = await freshVhost();
  const management = await findManagement(vhost.amqpUrl, vhost.managementUrl);
  const link = await openLink({ url: vhost.amqpUrl, name: 'control' });
  await link.ready(10_000);
  await declareTopology(link, { platforms: [] });
  await declareNode(link, NODE);
  const { user, password } = await ensureNodeAccount(management, NODE);
  const url = new URL(vhost.amqpUrl);
  Object.assign(url, { username: encodeURIComponent(user), password });
  const key = generateKeyPair();
  const credentials = join(machine.folder, 'credentials.json');
  const content = { mesh: 'home', node: NODE, amqpUrl: url.href, registryUrl: registryUrl(), meshPublicKey: key.publicKey };
  writeFileSync(credentials, JSON.stringify(content), { mode: 0o600 });
  const beats: NodeBeat[] = [];
  const reports: NodeReport[] = [];
  const hosts: ChildProcess[] = [];
  let nodeKey: string | null = null;

  await link.consume(QUEUES.nodeBeats, { prefetch: 10 }, async (delivery) => {
    const sealed = envelope.parse(JSON.parse(delivery.body.toString()));
    const claimed = nodeBeat.parse(JSON.parse(Buffer.from(sealed.payload, 'base64').toString()));
    nodeKey ??= claimed.publicKey;
    if (delivery.userId !== user) throw new Error(`a beat by ${delivery.userId}`);
    beats.push(nodeBeat.parse(verify(sealed, [nodeKey], NODE_MESSAGE_TYPE)));
    delivery.ack();
  });
  await link.consume(QUEUES.reports, { prefetch: 10 }, async (delivery) => {
    const sealed = envelope.parse(JSON.parse(delivery.body.toString()));
    if (nodeKey === null) throw new Error('no beat has come yet');
    reports.push(nodeReport.parse(verify(sealed, [nodeKey], NODE_MESSAGE_TYPE)));
    delivery.ack();
  });

  async function kill(host: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    if (host.exitCode !== null || host.signalCode !== null) return;
    const ended = once(host, 'exit');
    host.kill(signal);
    await ended;
  }

  return {
    beats,
    reports,
    amqpUrl: url.href,
    send: (declaration) => link.publish('', nodeQueue(NODE), sign(DECLARATION_TYPE, declaration, key.privateKey)),
    sendRaw: (body) => link.publish('', nodeQueue(NODE), body),
    startHost(environment = {}) {
      const args = ['-r', join(root, 'test', 'support', 'typescript.cjs'), join(root, 'workers', 'host.ts')];
      const host = spawn(process.execPath, [...args, '--credentials', credentials, '--root', machine.root, '--state', machine.state], {
        env: { PATH: process.env.PATH, TALLY_TIMES_HOST_BEAT: '500', TALLY_TIMES_SERVICE_SETTLE: '200', ...environment },
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      hosts.push(host);
      return host;
    },
    kill,
    async cut() {
      await removeAccount(management, user);
    },
    async mend() {
      await ensureNodeAccount(management, NODE, password);
    },
    async close() {
      for (const host of hosts) await kill(host, 'SIGKILL');
      await link.close();
    },
  };
}

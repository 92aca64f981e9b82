import { type Control, startControl } from '../../src/control';
import { EnvironmentError } from '../../src/domain/errors';
import { recordAnswer } from '../../src/inventory/answers';
import { declareBuild } from '../../src/inventory/declare';
import { addNode } from '../../src/inventory/nodes';
import { assign } from '../../src/inventory/placing';
import {
  declareNode,
  ensureNodeAccount,
  generateKeyPair,
  type KeyPair,
  type Link,
  nodeExchange,
  nodeQueue,
  openLink,
  QUEUES,
  ROUTES,
  sign,
  verify,
} from '../../src/link';
import { DECLARATION_TYPE, type Declaration, declaration } from '../../src/schema/declaration';
import { envelope, NODE_MESSAGE_TYPE, type NodeBeat, type NodeReport } from '../../src/schema/messages';
import { buildOf, type ControlWorld, controlWorld, HEAD, inspectionOf, moduleAt } from '../support/control';
import { eventually } from '../support/eventually';

let world: ControlWorld;
let control: Control;
const intent = { who: 'test', why: 'a test' };

interface Host {
  readonly node: string;
  readonly link: Link;
  readonly key: KeyPair;
}

beforeAll(async () => {
  world = await controlWorld({ retryFirst: 500 });
  control = await start();
  world.atEnd(() => control.stop());
});

afterAll(() => world.close());

async function start(): Promise<Control> {
  return await startControl(world.deps, { ensureTemporal: async () => undefined, runningModules: async () => new Set(), connections: () => 0 });
}

async function host(node: string): Promise<Host> {
  const { user, password } = await ensureNodeAccount(world.management, node);
  await declareNode(world.link, node);
  await addNode(world.db, { name: node, site: 'home', facts: {}, brokerUser: user });
  const url = new URL(world.broker.amqpUrl);
  Object.assign(url, { username: encodeURIComponent(user), password });
  const link = await openLink({ url: url.href, name: node });
  world.atEnd(() => link.close());
  await link.ready(10_000);
  return { node, link, key: generateKeyPair() };
}

function beatOf({ node, key }: Host, over: Partial<NodeBeat> = {}): NodeBeat {
  const reads = { versions: [1], shapes: ['file', 'directory', 'archive', 'service', 'action'] };
  return {
    v: 1,
    type: 'beat',
    node,
    epoch: 'e1',
    at: '2026-11-29T14:00:00.000Z',
    publicKey: key.publicKey,
    hostVersion: '1',
    reads,
    received: null,
    applied: null,
    reportNumber: 0,
    ...over,
  };
}

function reportOf(node: string, number: number, over: Partial<NodeReport> = {}): NodeReport {
  return {
    v: 1,
    type: 'report',
    node,
    epoch: 'e1',
    number,
    at: '2026-11-29T14:00:00.000Z',
    declaration: null,
    modules: [],
    removed: [],
    refused: null,
    ...over,
  };
}

async function beat(from: Host, over: Partial<NodeBeat> = {}): Promise<void> {
  await from.link.publish(nodeExchange(from.node), ROUTES.nodeBeat, sign(NODE_MESSAGE_TYPE, beatOf(from, over), from.key.privateKey), {
    persistent: false,
  });
}

async function report(from: Host, what: NodeReport, key = from.key): Promise<void> {
  await from.link.publish(nodeExchange(from.node), ROUTES.report, sign(NODE_MESSAGE_TYPE, what, key.privateKey));
}

/** Its first beat has been taken, and with it its key. */
async function knownHost(node: string): Promise<Host> {
  const known = await host(node);
  await beat(known);
  await eventually(async () => (await world.count('node where name = $1 and public_key is not null', [node])) === 1);
  return known;
}

async function deadLetter(queue: string, containing: string): Promise<string> {
  const letter = await eventually(async () => {
    const [row] = await world.db.query<{ reason: string }>('select reason from dead_letter where queue = $1 and reason like $2', [
      queue,
      `%${containing}%`,
    ]);
    return row ?? null;
  });
  return letter.reason;
}

/** A fit build of a module with one file, declared on the node. */
async function declaredOn(node: string, module: string): Promise<string> {
  const { now, times } = world.deps;
  const answered = { v: 1, attempt: 1, builder: 'b', startedAt: '2026-11-29T14:00:00.000Z', endedAt: '2026-11-29T14:00:01.000Z' } as const;
  const manifest = { module, resources: [{ file: { path: `/etc/${module}`, content: 'hello' } }] };
  await moduleAt(world, module);
  await recordAnswer(
    world.db,
    { ...answered, kind: 'inspect', outcome: 'valid', request: await inspectionOf(world, module), manifest, notes: [] },
    now(),
    times,
  );
  const build = await buildOf(world, module);
  await recordAnswer(
    world.db,
    { ...answered, kind: 'build', outcome: 'fit', request: build, artifacts: [], inputs: [], provenance: null, log: null, steps: {} },
    now(),
    times,
  );
  await assign(world.db, module, node, intent);
  expect(await declareBuild(world.db, { module, buildId: build, nodes: [node], by: 'auto' })).toBe(1);
  return build;
}

interface SentRow {
  readonly sent: number | null;
  readonly digest: string | null;
  readonly own: number;
  readonly trouble: string | null;
}

async function sentTo(node: string): Promise<SentRow> {
  return await world.row(
    'select sent_sequence as sent, sent_digest as digest, own_sequence as own, send_trouble as trouble from node where name = $1',
    [node],
  );
}

describe('a beat', () => {
  it('brings the key of a node once; another key later is refused and shown', async () => {
    const alpha = await knownHost('alpha');
    const impostor: Host = { ...alpha, key: generateKeyPair() };
    await beat(impostor, { hostVersion: '2' });
    await eventually(async () => (await world.count('node where name = $1 and key_refused = $2', ['alpha', impostor.key.publicKey])) === 1);
    expect(await world.row('select public_key, host_version from node where name = $1', ['alpha'])).toEqual({
      public_key: alpha.key.publicKey,
      host_version: '1',
    });
  });

  it('with a key that its sender does not hold is a dead letter', async () => {
    const thief = await host('thief');
    const stolen = generateKeyPair();
    await beat(thief, { publicKey: stolen.publicKey });
    expect(await deadLetter(QUEUES.nodeBeats, 'not signed by thief')).toContain('none of its signatures');
  });

  it('in the name of another node is a dead letter', async () => {
    const beta = await knownHost('beta');
    await beat(beta, { node: 'gamma' });
    await deadLetter(QUEUES.nodeBeats, 'beta sent a beat of gamma');
  });
});

describe('a report', () => {
  it('counts once, however often it comes', async () => {
    const node = await knownHost('once');
    for (let i = 0; i < 3; i += 1) await report(node, reportOf('once', 1));
    await report(node, reportOf('once', 2));
    await eventually(async () => (await world.count('report where node = $1 and number = 2', ['once'])) === 1);
    expect(await world.count('report where node = $1', ['once'])).toBe(2);
  });

  it('that names another node is a dead letter and counts for neither', async () => {
    const liar = await knownHost('liar');
    await knownHost('victim');
    await report(liar, reportOf('victim', 1));
    await deadLetter(QUEUES.reports, 'liar sent a report about victim');
    expect(await world.count('report where node = any ($1)', [['liar', 'victim']])).toBe(0);
  });

  it('signed by another key is a dead letter', async () => {
    const forger = await knownHost('forger');
    await report(forger, reportOf('forger', 1), generateKeyPair());
    await deadLetter(QUEUES.reports, 'not signed by forger');
    expect(await world.count('report where node = $1', ['forger'])).toBe(0);
  });

  it('by the account of somebody else, or of nobody, is a dead letter', async () => {
    const quiet = await knownHost('quiet');
    const signed = sign(NODE_MESSAGE_TYPE, reportOf('quiet', 1), quiet.key.privateKey);
    await world.link.publish(nodeExchange('quiet'), ROUTES.report, signed);
    await deadLetter(QUEUES.reports, 'exchange of quiet by the account tally');
    await world.link.withChannel(async (channel) => channel.publish(nodeExchange('quiet'), ROUTES.report, Buffer.from(JSON.stringify(signed))));
    await deadLetter(QUEUES.reports, 'exchange of quiet by the account (none said)');
    await world.link.publish('', QUEUES.reports, signed);
    await deadLetter(QUEUES.reports, "did not come over a node's exchange");
    expect(await world.count('report where node = $1', ['quiet'])).toBe(0);
  });

  it('that is no envelope, or holds no report, is a dead letter and takes no other with it', async () => {
    const odd = await knownHost('odd');
    await Promise.all([
      odd.link.publish(nodeExchange('odd'), ROUTES.report, { hello: 'world' }),
      odd.link.publish(
        nodeExchange('odd'),
        ROUTES.report,
        sign(NODE_MESSAGE_TYPE, { v: 1, type: 'report', node: 'odd', surprise: true }, odd.key.privateKey),
      ),
      report(odd, reportOf('odd', 1)),
    ]);
    await eventually(async () => (await world.count('report where node = $1', ['odd'])) === 1);
    await eventually(async () => (await world.count('dead_letter where queue = $1 and body like $2', [QUEUES.reports, '%'])) >= 2);
  });

  it('waits for the first beat, which brings the key, and holds nobody up', async () => {
    const early = await host('early');
    const other = await knownHost('other');
    await report(early, reportOf('early', 1));
    await report(other, reportOf('other', 1));
    await eventually(async () => (await world.count('report where node = $1', ['other'])) === 1);
    expect(await world.count('report where node = $1', ['early'])).toBe(0);
    await beat(early);
    await eventually(async () => (await world.count('report where node = $1', ['early'])) === 1);
  });

  it('is not acknowledged before it is stored: a store that is away loses nothing, nor does a stop meanwhile', async () => {
    const kept = await knownHost('kept');
    world.storeFailure = new EnvironmentError('the store did not answer');
    await report(kept, reportOf('kept', 1));
    await control.stop();
    expect((await world.link.withChannel((channel) => channel.checkQueue(QUEUES.reports))).messageCount).toBe(1);
    control = await start();
    await report(kept, reportOf('kept', 2));
    world.storeFailure = null;
    await eventually(async () => (await world.count('report where node = $1', ['kept'])) === 2);
  });

  it('and a thousand more are taken in by batches, all of them', async () => {
    const many = await knownHost('many');
    await Promise.all(Array.from({ length: 1_000 }, (_, i) => report(many, reportOf('many', i + 1))));
    await eventually(async () => (await world.count('report where node = $1', ['many'])) > 0);
    await eventually(
      async () => (await world.row<{ last: number }>('select last_number as last from node where name = $1', ['many'])).last === 1_000,
      { timeoutMs: 20_000 },
    );
    const left = await world.link.withChannel((channel) => channel.checkQueue(QUEUES.reports));
    expect(left.messageCount).toBe(0);
    expect(await world.count('dead_letter where body like $1', ['%many%'])).toBe(0);
  }, 40_000);
});

describe('the sender', () => {
  function read(body: Buffer): Declaration {
    return declaration.parse(verify(envelope.parse(JSON.parse(body.toString())), [world.deps.signingKey.publicKey], DECLARATION_TYPE));
  }

  it('sends what is declared, signed, and records it once the broker confirmed it', async () => {
    const node = await knownHost('sent');
    const build = await declaredOn('sent', 'greeting');
    const got: Declaration[] = [];
    const consumer = await node.link.consume(nodeQueue('sent'), { prefetch: 1 }, async (delivery) => {
      got.push(read(delivery.body));
      delivery.ack();
    });
    const [first] = await eventually(() => got.length > 0 && got);
    expect(first).toMatchObject({ node: 'sent', builds: { greeting: { build, commit: HEAD } }, resources: [{ id: 'file/etc/greeting' }] });
    const row = await eventually(async () => {
      const sent = await sentTo('sent');
      return sent.sent === null ? null : sent;
    });
    expect(row).toMatchObject({ sent: first?.sequence, digest: first?.digest, trouble: null });

    // Sent is not received: two beats that do not name it, and it is sent again.
    await beat(node, { received: null });
    await eventually(async () => (await world.count('node where name = $1 and lagging_beats = 1', ['sent'])) === 1);
    await beat(node, { received: null });
    await eventually(() => got.length === 2);
    expect(got[1]).toMatchObject({ digest: first?.digest, sequence: (first?.sequence ?? 0) + 1 });
    await consumer.stop();
  });

  it('never records what the broker returned: the failure is shown, and the next try heals the queue', async () => {
    const node = await knownHost('queueless');
    await world.link.withChannel((channel) => channel.deleteQueue(nodeQueue('queueless')));
    await declaredOn('queueless', 'salute');
    const failed = await eventually(async () => {
      const row = await sentTo('queueless');
      return row.trouble === null ? null : row;
    });
    expect(failed).toMatchObject({ sent: null, digest: null, own: 1 });
    expect(failed.trouble).toContain('came back');
    const row = await eventually(async () => {
      const sent = await sentTo('queueless');
      return sent.sent === null ? null : sent;
    });
    expect(row).toMatchObject({ sent: 2, own: 2, trouble: null });
    const got: number[] = [];
    const consumer = await node.link.consume(nodeQueue('queueless'), { prefetch: 1 }, async (delivery) => {
      got.push(read(delivery.body).sequence);
      delivery.ack();
    });
    await eventually(() => got.includes(2));
    await consumer.stop();
  });
});

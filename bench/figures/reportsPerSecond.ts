import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'amqplib';
import type { Db } from '../../src/inventory/db';
import {
  declareNode,
  declareTopology,
  findManagement,
  generateKeyPair,
  nodeAccount,
  nodeExchange,
  openLink,
  QUEUES,
  ROUTES,
  sign,
} from '../../src/link';
import { NODE_MESSAGE_TYPE, type NodeReport } from '../../src/schema/messages';
import { startControlProcess } from '../control';
import type { Benchmark } from '../figure';
import { type BenchServers, seedModules, withServers } from '../mesh';

const NODES = 1_000;
const MODULES = 10;
const PLACED_ON_EACH = 3;
const REPORTS_OF_EACH = 20;
const ALL = NODES * REPORTS_OF_EACH;
const UNCONFIRMED_AT_A_TIME = 1_000;
const GIVE_UP_MS = 300_000;

/** How fast signed reports that wait on the broker are verified and stored; writing them is the nodes' work and is not measured. */
export const reportsPerSecond: Benchmark = {
  figures: ['reports-per-second'],
  run: ({ print, say }) =>
    withServers(['temporal', 'postgres', 'rabbitmq', 'registry'], say, async (servers) => {
      const keys = generateKeyPair();
      await seedNodes(servers, keys.publicKey);
      say(`${ALL} reports are signed and laid on the broker`);
      await fillQueue(servers, keys.privateKey);
      const control = await startControlProcess(servers);
      try {
        print({ name: 'reports-per-second', value: await rateOf(servers.db, say), unit: '1/s', reference: { name: 'aim', value: 2_000 } });
      } finally {
        await control.stop();
      }
    }),
};

async function seedNodes({ db, addresses }: BenchServers, publicKey: string): Promise<void> {
  await seedModules(db, MODULES);
  await db.query(
    `insert into node (name, broker_user, public_key, last_beat_at) select name, replace($2, 'NODE', name), $3, now()
     from (select 'node-' || lpad(n::text, 4, '0') as name from generate_series(0, $1::int - 1) n) nodes`,
    [NODES, nodeAccount(addresses.amqpUrl, 'NODE'), publicKey],
  );
  await db.query(
    `insert into placement (module, node, build_id, declared_at)
     select m.name, n.name, m.effective_build, now() from node n, module m
     where (right(n.name, 4)::int + right(m.name, 5)::int) % $1::int < $2::int`,
    [MODULES, PLACED_ON_EACH],
  );
  await db.query('update node set version = 1, derived_version = 1', []);
}

/** Everything a node does itself, but for its account: one that may speak for all of them stands in for a thousand. */
async function fillQueue({ db, addresses }: BenchServers, privateKey: string): Promise<void> {
  const link = await openLink({ url: addresses.amqpUrl, name: 'bench' });
  await link.ready(10_000);
  await declareTopology(link, { platforms: [] });
  const nodes = await db.query<{ name: string; modules: string[] }>(
    'select node as name, array_agg(module order by module) as modules from placement group by node order by node',
    [],
  );
  for (const { name } of nodes) await declareNode(link, name);
  await link.close();

  const url = new URL(addresses.amqpUrl);
  url.username = 'bench';
  url.password = randomUUID();
  await makeImpersonator(addresses.amqpUrl, addresses.amqpManagementUrl, url);
  const model = await connect(url.href);
  const channel = await model.createConfirmChannel();
  const epoch = randomUUID();
  let unconfirmed = 0;
  for (let number = 1; number <= REPORTS_OF_EACH; number += 1) {
    for (const { name, modules } of nodes) {
      const content = Buffer.from(JSON.stringify(sign(NODE_MESSAGE_TYPE, reportOf(name, epoch, number, modules), privateKey)));
      const userId = nodeAccount(addresses.amqpUrl, name);
      channel.publish(nodeExchange(name), ROUTES.report, content, { persistent: true, contentType: 'application/json', userId });
      unconfirmed += 1;
      if (unconfirmed === UNCONFIRMED_AT_A_TIME) {
        await channel.waitForConfirms();
        unconfirmed = 0;
      }
    }
  }
  await channel.waitForConfirms();
  const { messageCount } = await channel.checkQueue(QUEUES.reports);
  await model.close();
  if (messageCount !== ALL) throw new Error(`${messageCount} of ${ALL} reports are in the queue`);
}

async function makeImpersonator(amqpUrl: string, managementUrl: string | null, { username, password }: URL): Promise<void> {
  const { url, authorization, vhost } = await findManagement(amqpUrl, managementUrl ?? undefined);
  const put = async (path: string, body: object): Promise<void> => {
    const headers = { authorization, 'content-type': 'application/json' };
    const response = await fetch(`${url}${path}`, { method: 'PUT', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(10_000) });
    if (!response.ok) throw new Error(`PUT ${path}: ${response.status}`);
  };
  await put(`/api/users/${username}`, { password, tags: 'impersonator' });
  await put(`/api/permissions/${encodeURIComponent(vhost)}/${username}`, { configure: '^$', write: '.*', read: '.*' });
}

function reportOf(node: string, epoch: string, number: number, modules: readonly string[]): NodeReport {
  const digest = `sha256:${'c'.repeat(64)}`;
  return {
    v: 1,
    type: 'report',
    node,
    epoch,
    number,
    at: new Date().toISOString(),
    declaration: { sequence: 1, digest },
    modules: modules.map((module) => ({ module, digest, state: 'held', failures: [], changes: [] })),
    removed: [],
    refused: null,
  };
}

/** From the first stored batch to the last, by the store's clock. */
async function rateOf(db: Db, say: (text: string) => void): Promise<number> {
  const deadline = Date.now() + GIVE_UP_MS;
  let first: { stored: number; at: number } | null = null;
  for (let round = 0; ; round += 1) {
    const [row] = await db.query<{ stored: number; at: number }>(
      'select sum(last_number)::bigint as stored, extract(epoch from clock_timestamp())::float8 as at from node',
      [],
    );
    if (row === undefined) throw new Error('the store has no nodes');
    if (first === null && row.stored > 0) first = row;
    if (first !== null && row.stored === ALL) return (row.stored - first.stored) / (row.at - first.at);
    if (Date.now() > deadline) throw new Error(`${row.stored} of ${ALL} reports are stored after ${GIVE_UP_MS / 1_000} s`);
    if (round % 20 === 0) say(`${row.stored} of ${ALL} reports stored`);
    await pause(50);
  }
}

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { restoreAccounts } from '../../src/control';
import { addNode } from '../../src/inventory/nodes';
import { accountsOf, declareNode, declareTopology, ensureNodeAccount, openLink, removeAccount } from '../../src/link';
import { type ControlWorld, controlWorld } from '../support/control';

let world: ControlWorld;
let home: string;
beforeAll(async () => {
  world = await controlWorld();
  home = mkdtempSync(join(tmpdir(), 'tally-accounts-'));
  world.atEnd(async () => rmSync(home, { recursive: true }));
  mkdirSync(join(home, 'nodes'));
  await declareTopology(world.link, { platforms: [] });
});
afterAll(() => world.close());

/** Gives the address by which its host connects. */
async function nodeWithAccount(name: string, isFileHere: boolean): Promise<string> {
  await declareNode(world.link, name);
  const { user, password } = await ensureNodeAccount(world.management, name);
  await addNode(world.db, { name, site: 'home', facts: {}, brokerUser: user });
  const url = new URL(world.broker.amqpUrl);
  Object.assign(url, { username: encodeURIComponent(user), password });
  if (isFileHere) writeFileSync(join(home, 'nodes', `${name}.json`), JSON.stringify({ node: name, amqpUrl: url.href }));
  await removeAccount(world.management, user);
  return url.href;
}

it('a broker that was set up anew knows the nodes again whose credentials lie here; the others are named', async () => {
  const address = await nodeWithAccount('alpha', true);
  await nodeWithAccount('beta', false);
  const others = await accountsOf(world.management);
  expect(await restoreAccounts(world.deps, world.management, home)).toEqual(['beta']);
  expect((await accountsOf(world.management)).size).toBe(others.size + 1);
  const host = await openLink({ url: address, name: 'host alpha' });
  await host.ready(10_000);
  await host.close();
  // What is there is left alone.
  expect(await restoreAccounts(world.deps, world.management, home)).toEqual(['beta']);
});

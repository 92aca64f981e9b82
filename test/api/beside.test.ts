/** The neighbours that a status shows are worked out once for each graph, and are never those of another one. */
import { neighboursOfAll } from '../../src/api/beside';
import { type Db, migrate, openInventory } from '../../src/inventory';
import { neighbours } from '../../src/inventory/asking';
import { addEdges } from '../support/edges';
import { inStep } from '../support/meshes';
import { freshDatabase } from '../support/servers';

let store: Db;
let asked: string[];
/** As the store, with a list of what it was asked. */
let db: Db;
let isBroken: boolean;

beforeAll(async () => {
  const databaseUrl = await freshDatabase();
  await migrate(databaseUrl);
  store = openInventory(databaseUrl, { max: 2 });
});

beforeEach(async () => {
  await store.query('truncate module cascade');
  for (const module of ['core', 'kiosk', 'site', 'board-types']) await inStep(store, module);
  asked = [];
  isBroken = false;
  db = {
    ...store,
    async query(sql, values) {
      asked.push(sql);
      if (isBroken && sql.includes('array_agg')) throw new Error('the store went away');
      return await store.query(sql, values);
    },
  };
});

afterAll(async () => {
  await store.close();
});

async function shown(): Promise<Record<string, string>> {
  const all = await neighboursOfAll(db);
  return Object.fromEntries([...all].map(([name, { buildsOn, builtOnBy }]) => [name, `${buildsOn.first.join(',')} < ${builtOnBy.first.join(',')}`]));
}

function workedOut(): number {
  return asked.filter((sql) => sql.includes('array_agg')).length;
}

test('they are worked out once as long as the graph is the same, whatever else moves', async () => {
  await addEdges(store, 'kiosk > core a.go:1', 'kiosk > board-types a.go:2', 'site > core? a_test.go:1');
  const first = { core: ' < kiosk,site', kiosk: 'board-types,core < ', 'board-types': ' < kiosk', site: 'core < ' };
  expect(await shown()).toEqual(first);
  await store.query(`update module set line = 'another', facts_version = facts_version + 1`);
  expect(await shown()).toEqual(first);
  expect(workedOut()).toBe(1);
});

test('they follow each change of the graph, also one that leaves as many edges as before', async () => {
  await addEdges(store, 'kiosk > core a.go:1 x.org/core', 'kiosk > core a.go:2 x.org/core/deep');
  expect(await shown()).toEqual({ core: ' < kiosk', kiosk: 'core < ' });
  await store.query(`update build_edge set input = 'site'`);
  expect(await shown()).toEqual({ site: ' < kiosk', kiosk: 'site < ' });
  await store.query(`update build_edge set module = 'site', input = 'kiosk'`);
  expect(await shown()).toEqual({ site: 'kiosk < ', kiosk: ' < site' });
  await store.query('delete from build_edge');
  expect(await shown()).toEqual({});
  expect(workedOut()).toBe(4);
});

test('of each module they are those that are read for it alone', async () => {
  await addEdges(store, 'kiosk > core a.go:1 x.org/core', 'kiosk > core a.go:2 x.org/core/deep', 'core > board-types b.go:1', 'site > core c.go:1');
  for (let at = 10; at < 22; at += 1) {
    await inStep(store, `user-${at}`);
    await addEdges(store, `user-${at} > core a.go:1`);
  }
  const all = await neighboursOfAll(db);
  expect(all.get('core')).toMatchObject({ buildsOn: { count: 1 }, builtOnBy: { count: 14 } });
  for (const [name, found] of all)
    expect(new Map([[name, found]])).toEqual(new Map([...(await neighbours(store, [name]))].filter(([one]) => one === name)));
});

test('a reading that failed is no answer of the next one', async () => {
  await addEdges(store, 'kiosk > core a.go:1');
  isBroken = true;
  await expect(neighboursOfAll(db)).rejects.toThrow('went away');
  isBroken = false;
  expect(await shown()).toEqual({ core: ' < kiosk', kiosk: 'core < ' });
});

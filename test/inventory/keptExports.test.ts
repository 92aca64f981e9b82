import type { Db } from '../../src/inventory';
import { buildFailed, buildFit, bumpedBy, edges, factsOf, isStale, moduleWith } from './graphMesh';
import { openStore } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());
beforeEach(() => db.query('delete from module'));

/** core ← user, both fit. */
async function pair(): Promise<void> {
  await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
  await buildFit(db, 'core');
  await moduleWith(db, 'user', 'a', { imports: ['x.org/core/p'] });
  await buildFit(db, 'user');
}

describe('a head that does not export a name any more takes it from nobody', () => {
  it('while it is built, and does once it is fit', async () => {
    await pair();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/kernel'] });
    expect(await edges(db)).toEqual(['user → core (out)']);
    expect(await isStale(db, 'user')).toBe(false);
    expect(await bumpedBy(db, () => buildFit(db, 'core', 'kernel'))).toContain('user');
    expect(await edges(db)).toEqual([]);
    expect(await isStale(db, 'user')).toBe(true);
    expect((await factsOf(db, 'user')).graph.openImport).toBeNull();
  });

  it('nor one that comes out the same: the name is in the source', async () => {
    await pair();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/kernel'] });
    await buildFit(db, 'core');
    expect(await edges(db)).toEqual([]);
  });

  it('when it failed', async () => {
    await pair();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/kernel'] });
    await buildFailed(db, 'core');
    expect(await edges(db)).toEqual(['user → core (out)']);
    expect(await isStale(db, 'user')).toBe(false);
    await moduleWith(db, 'user', 'b', { imports: ['x.org/core/p'] });
    expect((await factsOf(db, 'user')).graph.inputs.map(({ module }) => module)).toEqual(['core']);
  });

  it('when it is refused for a name that another one has', async () => {
    await pair();
    await moduleWith(db, 'other', 'a', { exports: ['x.org/other'] });
    await moduleWith(db, 'core', 'b', { exports: ['x.org/other'] });
    expect((await factsOf(db, 'core')).graph.conflicts).toEqual([{ name: 'x.org/other', module: 'other' }]);
    expect(await edges(db)).toEqual(['user → core (out)']);
    expect(await isStale(db, 'user')).toBe(false);
  });
});

it('two that swap their names are refused for nothing, and each name leads to the other one once both are fit', async () => {
  for (const name of ['one', 'two']) {
    await moduleWith(db, name, 'a', { exports: [`x.org/${name}`] });
    await buildFit(db, name);
  }
  await moduleWith(db, 'user', 'a', { imports: ['x.org/one'] });
  await buildFit(db, 'user');
  await moduleWith(db, 'one', 'b', { exports: ['x.org/none'] });
  await moduleWith(db, 'two', 'b', { exports: ['x.org/one'] });
  await moduleWith(db, 'one', 'c', { exports: ['x.org/two'] });
  for (const name of ['one', 'two']) expect((await factsOf(db, name)).graph.conflicts).toEqual([]);
  expect(await edges(db)).toEqual(['user → one (out)']);
  await buildFit(db, 'one', 'one, swapped');
  expect(await edges(db)).toEqual(['user → two (out)']);
  await buildFit(db, 'two', 'two, swapped');
  await buildFit(db, 'user', 'user, swapped');
  expect(await edges(db)).toEqual(['user → two (out)']);
});

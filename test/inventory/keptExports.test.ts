import type { Db } from '../../src/inventory';
import { answerFit, buildFailed, buildFit, bumpedBy, edges, factsOf, inputs, isStale, moduleWith, open } from './graphMesh';
import { commitOf, openStore, read } from './store';

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

describe('what only a head exports that was never fit', () => {
  const missingOf = async (module: string): Promise<string[]> => (await factsOf(db, module)).graph.missing.map(({ because }) => because);

  async function ahead(): Promise<void> {
    await pair();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core', 'x.org/fresh'] });
    await moduleWith(db, 'late', 'a', { imports: ['x.org/core', 'x.org/fresh'] });
  }

  it('is missing, and the build of whoever imports it waits', async () => {
    await ahead();
    expect(await missingOf('late')).toEqual(['core at aaaaaaa does not export x.org/fresh']);
    const { closure, graph } = await factsOf(db, 'late');
    expect(closure).toBeNull();
    expect(graph.missing.map(({ needsPerson }) => needsPerson)).toEqual([false]);
    expect(await bumpedBy(db, () => buildFit(db, 'core', 'core, fresh'))).toContain('late');
    expect(await missingOf('late')).toEqual([]);
    expect(await inputs(db, 'late')).toEqual(['core/out']);
    await buildFit(db, 'late');
  });

  it('needs a person where the head failed, and holds nobody who does not import it', async () => {
    await ahead();
    expect(await bumpedBy(db, () => buildFailed(db, 'core'))).toContain('late');
    expect((await factsOf(db, 'late')).graph.missing).toMatchObject([{ module: 'core', needsPerson: true }]);
    expect(await isStale(db, 'user')).toBe(false);
    await moduleWith(db, 'user', 'b', { imports: ['x.org/core/p'] });
    expect(await missingOf('user')).toEqual([]);
    await buildFit(db, 'user');
  });

  it('is no more where the head moves back, and then of outside', async () => {
    await ahead();
    await buildFailed(db, 'core');
    await read(db, 'core', commitOf('a'));
    expect(await missingOf('late')).toEqual([]);
    expect((await factsOf(db, 'late')).closure).not.toBeNull();
  });

  it('is there where it came out the same', async () => {
    await ahead();
    expect(await bumpedBy(db, () => buildFit(db, 'core'))).toContain('late');
    expect(await missingOf('late')).toEqual([]);
    await buildFit(db, 'late');
  });

  it('says so too where only tests import it', async () => {
    await pair();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core', 'x.org/fresh'] });
    await moduleWith(db, 'user', 'b', { imports: ['x.org/core', 'test:x.org/fresh'] });
    expect(await missingOf('user')).toEqual(['core at aaaaaaa does not export x.org/fresh']);
  });
});

describe('a more specific name that only a head exports that was never fit', () => {
  async function nested(): Promise<void> {
    await pair();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core', 'x.org/core/p'] });
  }

  it('takes no import from the name by which it was fit, before it is fit itself', async () => {
    await nested();
    await buildFailed(db, 'core');
    expect(await isStale(db, 'user')).toBe(false);
    await moduleWith(db, 'user', 'b', { imports: ['x.org/core/p'] });
    expect((await factsOf(db, 'user')).graph.missing).toEqual([]);
    await moduleWith(db, 'core', 'c', { exports: ['x.org/core', 'sub=x.org/core/p'] });
    await buildFit(db, 'core', { out: 'core', sub: 'nested' });
    expect(await edges(db)).toEqual(['user → core (sub)']);
  });

  it('is waited for by an import that is new', async () => {
    await nested();
    await moduleWith(db, 'late', 'a', { imports: ['x.org/core/p'] });
    expect((await factsOf(db, 'late')).graph.missing.map(({ because }) => because)).toEqual(['core at aaaaaaa does not export x.org/core/p']);
  });

  it('takes nothing from what was of outside when it was fit', async () => {
    await moduleWith(db, 'user', 'a', { imports: ['x.org/fresh'] });
    await buildFit(db, 'user');
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core', 'x.org/fresh'] });
    expect(await edges(db)).toEqual([]);
    expect(await isStale(db, 'user')).toBe(false);
    await buildFit(db, 'core', 'with fresh');
    expect(await edges(db)).toEqual(['user → core (out)']);
    expect(await isStale(db, 'user')).toBe(true);
  });
});

describe('a module that was never fit takes nothing from whoever was fit without it', () => {
  it('neither what was of outside, nor what a less specific name carries', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'user', 'a', { imports: ['x.org/fresh', 'x.org/core/p'] });
    await buildFit(db, 'user');
    await moduleWith(db, 'fork', 'a', { exports: ['x.org/fresh', 'x.org/core/p'] });
    await buildFailed(db, 'fork');
    expect(await edges(db)).toEqual(['user → core (out)']);
    expect(await isStale(db, 'user')).toBe(false);
    await moduleWith(db, 'fork', 'b', { exports: ['x.org/fresh', 'x.org/core/p'] });
    await buildFit(db, 'fork');
    expect(await edges(db)).toEqual(['user → fork (out)']);
    expect(await isStale(db, 'user')).toBe(true);
  });

  it('nor where its name was seen while that build ran', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'user', 'a', { imports: ['x.org/fresh', 'x.org/core'] });
    const running = await open(db, 'user');
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core', 'x.org/fresh'] });
    expect((await factsOf(db, 'user')).closure).toBeNull();
    await answerFit(db, running, 'user');
    await buildFailed(db, 'core');
    expect((await factsOf(db, 'user')).graph.missing).toEqual([]);
    expect(await isStale(db, 'user')).toBe(false);
  });

  it('nor where its head moves back to the commit that was fit', async () => {
    await moduleWith(db, 'user', 'a', { imports: ['x.org/fresh'] });
    await buildFit(db, 'user');
    await moduleWith(db, 'fork', 'a', { exports: ['x.org/fresh'] });
    await moduleWith(db, 'user', 'b', {});
    await read(db, 'user', commitOf('a'));
    expect(await edges(db)).toEqual([]);
    expect(await isStale(db, 'user')).toBe(false);
  });

  it('nor where the import moves from tests to code', async () => {
    await moduleWith(db, 'user', 'a', { imports: ['test:x.org/fresh'] });
    await buildFit(db, 'user');
    await moduleWith(db, 'fork', 'a', { exports: ['x.org/fresh'] });
    await moduleWith(db, 'user', 'b', { imports: ['x.org/fresh'] });
    expect(await edges(db)).toEqual([]);
  });
});

it('a name that comes back before its module was fit without it was never away: whoever took it meanwhile is the one that is refused', async () => {
  await pair();
  await moduleWith(db, 'core', 'b', { exports: ['x.org/kernel'] });
  await buildFailed(db, 'core');
  await moduleWith(db, 'other', 'a', { exports: ['x.org/core'] });
  await read(db, 'core', commitOf('a'));
  expect((await factsOf(db, 'core')).graph.conflicts).toEqual([]);
  expect((await factsOf(db, 'other')).graph.conflicts).toEqual([{ name: 'x.org/core', module: 'core' }]);
  expect(await edges(db)).toEqual(['user → core (out)']);
  expect(await isStale(db, 'user')).toBe(false);

  await moduleWith(db, 'core', 'c', { exports: ['x.org/kernel'] });
  await buildFit(db, 'core', 'kernel');
  expect((await factsOf(db, 'other')).graph.conflicts).toEqual([]);
  expect(await edges(db)).toEqual(['user → other (out)']);
  await moduleWith(db, 'core', 'd', { exports: ['x.org/kernel', 'x.org/core'] });
  expect((await factsOf(db, 'core')).graph.conflicts).toEqual([{ name: 'x.org/core', module: 'other' }]);
});

it('a name that moves to another artifact stays by the one that has it, until the other is fit', async () => {
  await pair();
  await moduleWith(db, 'core', 'b', { exports: ['lib=x.org/core'] });
  expect(await edges(db)).toEqual(['user → core (out)']);
  await buildFailed(db, 'core');
  expect(await isStale(db, 'user')).toBe(false);
  await moduleWith(db, 'core', 'c', { exports: ['lib=x.org/core'] });
  await buildFit(db, 'core', { lib: 'the same elsewhere' });
  expect(await edges(db)).toEqual(['user → core (lib)']);
  expect(await inputs(db, 'user')).toEqual(['core/lib']);
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

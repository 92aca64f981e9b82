import { closureOf as closureInDomain } from '../../src/domain/closure';
import { type Db, openInspection, recordAnswer, removeModule } from '../../src/inventory';
import { buildFit, bumpedBy, edges, factsOf, moduleWith } from './graphMesh';
import { commitOf, digest, openStore, read, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());
beforeEach(() => db.query('delete from module'));

const who = { who: 'ada', why: 'test' };

describe('an edge', () => {
  it('leads to the longest name that any module exports: lib, lib-core and lib/v2 are never confused', async () => {
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'lib-core', 'a', { exports: ['x.org/lib-core'] });
    await moduleWith(db, 'lib-two', 'a', { exports: ['x.org/lib/v2'] });
    await moduleWith(db, 'lib-deep', 'a', { exports: ['x.org/lib/deep'] });
    await moduleWith(db, 'plain', 'a', { imports: ['x.org/lib/sub'] });
    await moduleWith(db, 'dashed', 'a', { imports: ['x.org/lib-core/sub'] });
    await moduleWith(db, 'second', 'a', { imports: ['x.org/lib/v2/sub'] });
    await moduleWith(db, 'deep', 'a', { imports: ['x.org/lib/deep/er', 'x.org/libel', 'X.org/lib'] });
    expect(await edges(db)).toEqual(['dashed → lib-core (out)', 'deep → lib-deep (out)', 'plain → lib (out)', 'second → lib-two (out)']);
  });

  it('to a version that nobody exports is none to the package of another version', async () => {
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'second', 'a', { imports: ['x.org/lib/v2/sub'] });
    expect(await edges(db)).toEqual([]);
  });

  it('is of one language: @a/b is not @a/b-c, and a crate is no package', async () => {
    await moduleWith(db, 'b', 'a', {});
    const names = async (module: string, letter: string, exports: object[], imports: object[]): Promise<void> => {
      await read(db, module, commitOf(letter));
      const request = (await openInspection(db, module, commitOf(letter))) ?? '';
      const answer = { v: 1, request, attempt: 1, builder: 'b', startedAt: '2026-11-29T12:00:00.000Z', endedAt: '2026-11-29T12:00:00.000Z' };
      await recordAnswer(db, { ...answer, kind: 'inspect', outcome: 'valid', manifest: {}, notes: [], exports, imports } as never, tick(), times);
    };
    await moduleWith(db, 'bc', 'a', {});
    await moduleWith(db, 'user', 'a', {});
    const at = { file: 'package.json', line: 2 };
    await names('b', 'b', [{ language: 'npm', name: '@a/b', artifact: 'out', ...at }], []);
    await names(
      'bc',
      'b',
      [
        { language: 'npm', name: '@a/b-c', artifact: 'out', ...at },
        { language: 'rust', name: 'serde', artifact: 'crate', ...at },
      ],
      [],
    );
    const imports = [
      { language: 'npm', name: '@a/b-c', candidates: ['@a/b-c'], test: false, file: 'index.ts', line: 4 },
      { language: 'npm', name: 'serde', candidates: ['serde'], test: false, file: 'index.ts', line: 5 },
    ];
    await names('user', 'b', [], imports);
    expect(await edges(db)).toEqual(['user → bc (out)']);
    expect(await db.query('select file, line from build_edge')).toEqual([{ file: 'index.ts', line: 4 }]);
  });

  it('of code and tests alike is one of code', async () => {
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'both', 'a', { imports: ['test:x.org/lib/a', 'x.org/lib/b'] });
    await moduleWith(db, 'tests', 'a', { imports: ['test:x.org/lib/a'] });
    expect(await edges(db)).toEqual(['both → lib (out)', 'tests → ? lib (out)']);
  });

  it('to what a module exports itself is none, though others export a shorter name', async () => {
    await moduleWith(db, 'outer', 'a', { exports: ['x.org/mono'] });
    await moduleWith(db, 'inner', 'a', { exports: ['x.org/mono/inner'], imports: ['x.org/mono/inner/sub'] });
    expect(await edges(db)).toEqual([]);
  });

  it('appears when the name is exported later, and goes when it is exported no more', async () => {
    await moduleWith(db, 'user', 'a', { imports: ['x.org/lib'] });
    expect(await edges(db)).toEqual([]);
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'] });
    expect(await edges(db)).toEqual(['user → lib (out)']);
    expect((await factsOf(db, 'user')).graph.missing).toMatchObject([{ module: 'lib', because: 'lib has had no fit build yet', needsPerson: false }]);
    await moduleWith(db, 'lib', 'b', { exports: ['x.org/renamed'] });
    expect(await edges(db)).toEqual([]);
    expect((await factsOf(db, 'user')).graph.missing).toEqual([]);
  });

  it('of a file that cannot be parsed stays, and says so', async () => {
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'other', 'a', { exports: ['x.org/other'] });
    await moduleWith(db, 'user', 'a', { exports: ['x.org/user'], imports: ['x.org/lib'] });
    await moduleWith(db, 'top', 'a', { imports: ['x.org/user'] });
    await moduleWith(db, 'user', 'b', { imports: ['x.org/other'], unparsed: ['a.go', 'go.mod'] });
    expect(await edges(db)).toEqual(['top → user (out)', 'user → lib (out)', 'user → other (out)']);
    expect((await factsOf(db, 'user')).graph.unparsed).toEqual(['a.go:3 expected )', 'go.mod:3 expected )']);
    await moduleWith(db, 'user', 'c', { imports: ['x.org/other'] });
    expect(await edges(db)).toEqual(['user → other (out)']);
    expect((await factsOf(db, 'user')).graph.unparsed).toEqual([]);
  });

  it('is as it was while the head is not inspected or invalid, and follows a force-push back at once', async () => {
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'user', 'a', { imports: ['x.org/lib'] });
    await moduleWith(db, 'user', 'b', {});
    expect(await edges(db)).toEqual([]);
    await read(db, 'user', commitOf('a'));
    expect(await edges(db)).toEqual(['user → lib (out)']);
    await read(db, 'user', commitOf('c'));
    expect(await edges(db)).toEqual(['user → lib (out)']);
    const id = (await openInspection(db, 'user', commitOf('c'))) ?? '';
    const problems = [{ file: 'module.yaml', line: 1, key: '', message: 'no' }];
    const answer = {
      v: 1,
      request: id,
      attempt: 1,
      builder: 'b',
      startedAt: '2026-11-29T12:00:00.000Z',
      endedAt: '2026-11-29T12:00:00.000Z',
    } as const;
    await recordAnswer(db, { ...answer, kind: 'inspect', outcome: 'invalid', problems }, tick(), times);
    expect(await edges(db)).toEqual(['user → lib (out)']);
    expect((await factsOf(db, 'user')).closure).toBeNull();
  });
});

describe('a name that two modules export', () => {
  beforeEach(async () => {
    await moduleWith(db, 'zeta', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'alpha', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'user', 'a', { imports: ['x.org/lib'] });
  });

  it('is kept by who exported it first; the other one is refused, naming both', async () => {
    expect(await edges(db)).toEqual(['user → zeta (out)']);
    expect((await factsOf(db, 'alpha')).graph.conflicts).toEqual([{ name: 'x.org/lib', module: 'zeta' }]);
    expect((await factsOf(db, 'zeta')).graph.conflicts).toEqual([]);
  });

  it('is the other one’s when the first is removed', async () => {
    expect(await bumpedBy(db, () => removeModule(db, 'zeta', who))).toEqual(['alpha', 'user']);
    expect(await edges(db)).toEqual(['user → alpha (out)']);
    expect((await factsOf(db, 'alpha')).graph.conflicts).toEqual([]);
    await moduleWith(db, 'zeta', 'a', { exports: ['x.org/lib'] });
    expect(await edges(db)).toEqual(['user → alpha (out)']);
    expect((await factsOf(db, 'zeta')).graph.conflicts).toEqual([{ name: 'x.org/lib', module: 'alpha' }]);
  });

  it('is the other one’s when the first exports it no more', async () => {
    await moduleWith(db, 'zeta', 'b', { exports: ['x.org/zeta'] });
    expect(await edges(db)).toEqual(['user → alpha (out)']);
    expect((await factsOf(db, 'alpha')).graph.conflicts).toEqual([]);
  });

  it('is not imported from the first by the one that exports it too', async () => {
    await moduleWith(db, 'alpha', 'b', { exports: ['x.org/lib'], imports: ['x.org/lib/sub'] });
    expect(await edges(db)).toEqual(['user → zeta (out)']);
  });
});

describe('a module that goes', () => {
  it('leaves no edge behind, and those that built on it are stale', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'], imports: ['x.org/core'] });
    await buildFit(db, 'lib');
    await moduleWith(db, 'apart', 'a', {});
    await buildFit(db, 'apart');
    expect(await bumpedBy(db, () => removeModule(db, 'core', who))).toEqual(['lib']);
    expect(await edges(db)).toEqual([]);
    expect(await factsOf(db, 'lib')).toMatchObject({ headBuild: null, graph: { inputs: [], builtInputs: [{ module: 'core' }] } });
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    expect(await edges(db)).toEqual(['lib → core (out)']);
    await buildFit(db, 'core');
    expect((await factsOf(db, 'lib')).headBuild).toMatchObject({ verdict: 'fit' });
  });
});

describe('a cycle of build edges', () => {
  it('is named from each of its members, and gone when one edge is', async () => {
    await moduleWith(db, 'a', 'a', { exports: ['x.org/a'], imports: ['x.org/b'] });
    await moduleWith(db, 'b', 'a', { exports: ['x.org/b'], imports: ['x.org/c'] });
    await moduleWith(db, 'below', 'a', { exports: ['x.org/below'] });
    await moduleWith(db, 'above', 'a', { imports: ['x.org/a'] });
    expect((await factsOf(db, 'a')).graph.cycle).toBeNull();
    await moduleWith(db, 'c', 'a', { exports: ['x.org/c'], imports: ['x.org/a', 'x.org/below'] });
    expect((await factsOf(db, 'a')).graph.cycle).toEqual(['a', 'b', 'c', 'a']);
    expect((await factsOf(db, 'b')).graph.cycle).toEqual(['b', 'c', 'a', 'b']);
    expect((await factsOf(db, 'below')).graph.cycle).toBeNull();
    const above = (await factsOf(db, 'above')).graph;
    expect(above).toMatchObject({ cycle: null, missing: [{ module: 'a', needsPerson: true }] });
    expect(above.settling.map((one) => [one.module, one.path])).toEqual([['below', ['above', 'a', 'b', 'c', 'below']]]);
    expect(await bumpedBy(db, () => moduleWith(db, 'c', 'b', { exports: ['x.org/c'] }))).toEqual(['a', 'above', 'b', 'c']);
    expect((await factsOf(db, 'a')).graph.cycle).toBeNull();
  });

  it('of tests is none: what is left is each waiting for the other’s first build, and that is named', async () => {
    await moduleWith(db, 'a', 'a', { exports: ['x.org/a'], imports: ['test:x.org/b'] });
    await moduleWith(db, 'b', 'a', { exports: ['x.org/b'], imports: ['x.org/a'] });
    expect((await factsOf(db, 'a')).graph).toMatchObject({ cycle: null, bootstrap: ['a', 'b', 'a'] });
    expect((await factsOf(db, 'b')).graph).toMatchObject({ cycle: null, bootstrap: ['b', 'a', 'b'] });
    await moduleWith(db, 'a', 'b', { exports: ['x.org/a'] });
    await buildFit(db, 'a', 'a');
    await buildFit(db, 'b', 'b');
    await moduleWith(db, 'a', 'c', { exports: ['x.org/a'], imports: ['test:x.org/b'] });
    expect((await factsOf(db, 'a')).graph).toMatchObject({ cycle: null, bootstrap: null, inputs: [{ module: 'b', isTest: true }] });
  });
});

describe('a closure', () => {
  it('is named by the store as by the domain', async () => {
    const inputs = [
      { module: 'z', artifact: 'b', digest: digest('1') },
      { module: 'a-b', artifact: 'x', digest: digest('2') },
      { module: 'ab', artifact: 'y', digest: digest('3') },
      { module: 'a', artifact: 'x-2', digest: digest('4') },
      { module: 'a', artifact: 'x', digest: digest('5') },
    ];
    for (const some of [[], inputs.slice(0, 1), inputs, [...inputs].reverse()]) {
      const [row] = await db.query<{ closure: string }>('select closure_of($1, $2) as closure', [commitOf('a'), JSON.stringify(some)]);
      expect(row?.closure).toBe(closureInDomain({ commit: commitOf('a'), inputs: some }, digest));
    }
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'lib', 'b', { imports: ['x.org/core'] });
    const facts = await factsOf(db, 'lib');
    expect(facts.closure).toBe(closureInDomain({ commit: commitOf('b'), inputs: facts.graph.inputs }, digest));
  });
});

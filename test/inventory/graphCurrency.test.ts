import { compare } from '../../src/domain/comparison';
import { changedModules, type Db, latestRequest, openBuild, recordAnswer, recordComparison } from '../../src/inventory';
import { answerFit, buildFailed, buildFit, bumpedBy, factsOf, inputs, inspectCode, isStale, moduleWith, open, stale } from './graphMesh';
import { commitOf, digest, openStore, read, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());
beforeEach(() => db.query('delete from module'));

/** core ← left, right ← bottom, all fit. */
async function diamond(): Promise<void> {
  await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
  await moduleWith(db, 'left', 'a', { exports: ['x.org/left'], imports: ['x.org/core'] });
  await moduleWith(db, 'right', 'a', { exports: ['x.org/right'], imports: ['x.org/core'] });
  await moduleWith(db, 'bottom', 'a', { imports: ['x.org/left', 'x.org/right'] });
  for (const name of ['core', 'left', 'right', 'bottom']) await buildFit(db, name);
}

describe('what a build uses', () => {
  it('is transitive, each artifact once, with all that the builder needs to fetch it', async () => {
    await diamond();
    expect(await inputs(db, 'bottom')).toEqual(['core/out', 'left/out', 'right/out']);
    await moduleWith(db, 'bottom', 'b', { imports: ['x.org/left'] });
    const { inputs: asked } = await open(db, 'bottom');
    expect(asked).toEqual([
      {
        module: 'core',
        artifact: 'out',
        kind: 'go',
        repository: 'tally/out',
        digest: digest('core'),
        blob: digest('blob of core'),
        size: 4,
        commit: commitOf('a'),
        names: [{ language: 'go', name: 'x.org/core' }],
        test: false,
      },
      expect.objectContaining({ module: 'left', names: [{ language: 'go', name: 'x.org/left' }] }),
    ]);
  });

  it('goes by artifact: who uses one is not touched by the other', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['one=x.org/one', 'two=x.org/two'] });
    await buildFit(db, 'core', { one: '1', two: '2' });
    await moduleWith(db, 'first', 'a', { imports: ['x.org/one'] });
    await moduleWith(db, 'second', 'a', { imports: ['x.org/two'] });
    await buildFit(db, 'first');
    await buildFit(db, 'second');
    expect(await inputs(db, 'first')).toEqual(['core/one']);
    await moduleWith(db, 'core', 'b', { exports: ['one=x.org/one', 'two=x.org/two'] });
    expect(await bumpedBy(db, () => buildFit(db, 'core', { one: '1', two: 'other' }))).toEqual(['core', 'second']);
    expect(await stale(db)).toEqual(['second']);
  });

  it('is what was asked for, or the build is not opened', async () => {
    await diamond();
    await moduleWith(db, 'bottom', 'b', { imports: ['x.org/left'] });
    const { closure } = await factsOf(db, 'bottom');
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'core, moved');
    const asked = { module: 'bottom', commit: commitOf('b'), closure: closure ?? '', platform: 'linux-amd64', askedBy: null };
    expect(await openBuild(db, asked)).toBeNull();
    expect(await openBuild(db, { ...asked, closure: (await factsOf(db, 'bottom')).closure ?? '' })).not.toBeNull();
  });

  it('is waited for without bound while it was never made, and the closure is not known till then', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await moduleWith(db, 'lib', 'a', { imports: ['x.org/core'] });
    expect(await factsOf(db, 'lib')).toMatchObject({ closure: null, graph: { settling: [{ module: 'core', path: ['lib', 'core'] }] } });
    expect(await bumpedBy(db, () => buildFailed(db, 'core'))).toEqual(['core', 'lib']);
    expect((await factsOf(db, 'lib')).graph).toMatchObject({ settling: [], missing: [{ module: 'core', needsPerson: true }] });
    await moduleWith(db, 'core', 'b', { exports: ['other=x.org/core'] });
    await buildFit(db, 'core', { out: '1' });
    expect((await factsOf(db, 'lib')).graph.missing).toMatchObject([{ because: 'core at bbbbbbb makes no artifact other', needsPerson: true }]);
    await moduleWith(db, 'core', 'c', { exports: ['other=x.org/core'] });
    await buildFit(db, 'core', { other: '1' });
    expect(await factsOf(db, 'lib')).toMatchObject({ closure: expect.stringMatching(/^sha256:/), graph: { missing: [] } });
  });

  it('of what an input used and nobody makes any more is what it used', async () => {
    await diamond();
    await db.query(`delete from module where name = 'core'`);
    await moduleWith(db, 'bottom', 'b', { imports: ['x.org/left'] });
    expect((await open(db, 'bottom')).inputs.map((input) => [input.module, input.digest])).toEqual([
      ['core', digest('core')],
      ['left', digest('left')],
    ]);
  });
});

describe('a change', () => {
  it('makes stale exactly what was compiled with it, the far as well as the near', async () => {
    await diamond();
    await moduleWith(db, 'apart', 'a', {});
    await buildFit(db, 'apart');
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    expect(await stale(db)).toEqual(['core']);
    expect(await bumpedBy(db, () => buildFit(db, 'core', 'core, moved'))).toEqual(['bottom', 'core', 'left', 'right']);
    expect(await stale(db)).toEqual(['bottom', 'left', 'right']);
    const { graph } = await factsOf(db, 'bottom');
    expect(graph.settling.map((one) => [one.module, one.state, one.path.join(' ')])).toEqual([
      ['left', 'waiting', 'bottom left'],
      ['right', 'waiting', 'bottom right'],
    ]);
  });

  it('is told to those that wait when what they wait for settles, on both sides of a diamond, and the bottom builds once', async () => {
    await diamond();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'core, moved');
    expect(await bumpedBy(db, () => buildFit(db, 'left', 'left, moved'))).toEqual(['bottom', 'left']);
    expect((await factsOf(db, 'bottom')).graph.settling.map((one) => one.module)).toEqual(['right']);
    // One side cuts off: the bottom has nothing to wait for all the same.
    expect(await bumpedBy(db, () => buildFit(db, 'right', 'right'))).toEqual(['bottom', 'right']);
    expect((await factsOf(db, 'bottom')).graph.settling).toEqual([]);
    const bottom = await open(db, 'bottom');
    expect(bottom.inputs.map((input) => input.digest)).toEqual([digest('core, moved'), digest('left, moved'), digest('right')]);
    await answerFit(db, bottom, 'bottom');
    expect(await stale(db)).toEqual([]);
  });

  it('that makes the same digest touches nobody', async () => {
    await diamond();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    expect(await bumpedBy(db, () => buildFit(db, 'core', 'core'))).toEqual(['core']);
    expect(await stale(db)).toEqual([]);
  });

  it('of a digest stops where a module comes out the same', async () => {
    await diamond();
    await moduleWith(db, 'top', 'a', { exports: ['x.org/top'] });
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'], imports: ['x.org/top'] });
    await buildFit(db, 'top');
    await buildFit(db, 'core', 'core');
    expect(await stale(db)).toEqual(['bottom', 'left', 'right']); // They are compiled with top now.
    for (const name of ['left', 'right', 'bottom']) await buildFit(db, name);
    await moduleWith(db, 'kiosk', 'a', { imports: ['test:x.org/top'] });
    await buildFit(db, 'kiosk');
    await moduleWith(db, 'top', 'b', { exports: ['x.org/top'] });
    await buildFit(db, 'top', 'top, moved');
    expect(await stale(db)).toEqual(['bottom', 'core', 'kiosk', 'left', 'right']);
  });

  it('while a dependant builds makes it stale after, not wrong, and the waiting begins anew', async () => {
    await diamond();
    await moduleWith(db, 'left', 'b', { exports: ['x.org/left'], imports: ['x.org/core'] });
    const running = await open(db, 'left');
    const before = (await factsOf(db, 'left')).graph.staleSince;
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'core, moved');
    expect((await factsOf(db, 'left')).graph.staleSince).toBe(before);
    await answerFit(db, running, 'left of before');
    const facts = await factsOf(db, 'left');
    expect(facts).toMatchObject({
      headBuild: null,
      effective: { id: running.id },
      graph: { builtInputs: [{ digest: digest('core') }], inputs: [{ digest: digest('core, moved') }] },
    });
    expect(facts.graph.staleSince).not.toBe(before);
  });

  it('back to digests that it had before finds its build again', async () => {
    await diamond();
    const [before] = await db.query<{ id: string }>(`select effective_build as id from module where name = 'left'`);
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'core, moved');
    await buildFit(db, 'left', 'left, moved');
    await read(db, 'core', commitOf('a'));
    expect(await factsOf(db, 'left')).toMatchObject({ headBuild: { id: before?.id }, effective: { id: before?.id } });
    expect(await latestRequest(db, 'left', null)).toBe(before?.id);
    expect(await stale(db)).toEqual([]);
  });
});

describe('an input that does not settle', () => {
  it('because it failed is used as it was', async () => {
    await diamond();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'core, moved');
    await buildFailed(db, 'left');
    await buildFit(db, 'right', 'right, moved');
    const { graph } = await factsOf(db, 'bottom');
    expect(graph.settling).toEqual([]);
    expect(graph.inputs.map((input) => input.digest)).toEqual([digest('core, moved'), digest('left'), digest('right, moved')]);
  });

  it('because its manifest is invalid is used as it was', async () => {
    await diamond();
    await moduleWith(db, 'bottom', 'b', { imports: ['x.org/left', 'x.org/right'] });
    await read(db, 'left', commitOf('b'));
    expect((await factsOf(db, 'bottom')).graph.settling).toMatchObject([{ module: 'left', state: 'inspecting' }]);
    const [request] = await db.query<{ id: string }>(
      `insert into request (id, kind, module, commit, closure, platform, body, state) values ('bad', 'inspect', 'left', $1, '', 'any', '{}', 'taken') returning id`,
      [commitOf('b')],
    );
    const problems = [{ file: 'module.yaml', line: 1, key: '', message: 'no' }];
    const answer = {
      v: 1,
      request: request?.id ?? '',
      attempt: 1,
      builder: 'b',
      startedAt: '2026-11-29T12:00:00.000Z',
      endedAt: '2026-11-29T12:00:00.000Z',
    } as const;
    expect(await bumpedBy(db, () => recordAnswer(db, { ...answer, kind: 'inspect', outcome: 'invalid', problems }, tick(), times))).toEqual([
      'bottom',
      'left',
    ]);
    expect((await factsOf(db, 'bottom')).graph.settling).toEqual([]);
  });
});

describe('what is effective', () => {
  it('of two builds of one commit is the one of the closure as it is now, else the one that was asked for last, whichever ended last', async () => {
    await diamond();
    await moduleWith(db, 'left', 'b', { exports: ['x.org/left'], imports: ['x.org/core'] });
    const first = await open(db, 'left');
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'core 2');
    const second = await open(db, 'left');
    await moduleWith(db, 'core', 'c', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'core 3');
    await answerFit(db, second, 'left 2');
    await answerFit(db, first, 'left 1');
    expect((await factsOf(db, 'left')).effective?.id).toBe(second.id);
    await read(db, 'core', commitOf('a'));
    expect((await factsOf(db, 'left')).effective?.id).toBe(first.id);
  });
});

describe('a build that is not reproducible', () => {
  it('is said, and what was made first stays in force: no cascade', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'at 14:02');
    await moduleWith(db, 'lib', 'a', { imports: ['x.org/core'] });
    await buildFit(db, 'lib');
    await db.query(`update module set again_at = now() where name = 'core'`);
    const again = await open(db, 'core');
    expect(await bumpedBy(db, () => answerFit(db, again, 'at 14:03'))).toEqual(['core']);
    expect(await db.query('select not_reproducible from build where id = $1', [again.id])).toEqual([{ not_reproducible: true }]);
    expect(await isStale(db, 'lib')).toBe(false);
  });

  it('does not go round where a module’s tests import what is built on it', async () => {
    await moduleWith(db, 'a', 'a', { exports: ['x.org/a'] });
    await buildFit(db, 'a', 'a 1');
    await moduleWith(db, 'b', 'a', { exports: ['x.org/b'], imports: ['x.org/a'] });
    await buildFit(db, 'b', 'b 1');
    await moduleWith(db, 'a', 'b', { exports: ['x.org/a'], imports: ['test:x.org/b'] });
    expect(await inputs(db, 'a')).toEqual(['?b/out']);
    await buildFit(db, 'a', 'a 2');
    expect(await stale(db)).toEqual(['b']);
    await buildFit(db, 'b', 'b 2');
    expect(await stale(db)).toEqual(['a']);
    // The same commit with the same inputs, other than those of its tests, made these artifacts already.
    await buildFit(db, 'a', 'a 3');
    expect(await stale(db)).toEqual([]);
  });
});

describe('two that do not see one another', () => {
  it('find the edge between them all the same', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `s${i}`);
    for (const name of names) await moduleWith(db, name, 'a', {});
    await Promise.all(names.map((name) => read(db, name, commitOf('b'))));
    await Promise.all(
      names.map((name, i) =>
        inspectCode(db, name, commitOf('b'), { exports: [`x.org/${name}`], imports: i === 0 ? [] : [`x.org/s${i - 1}`, 'x.org/s0'] }),
      ),
    );
    const found = await db.query<{ module: string }>('select module from build_edge');
    expect(found).toHaveLength(21);
    await Promise.all(names.map((name) => read(db, name, commitOf('a'))));
    expect(await db.query('select from build_edge')).toHaveLength(0);
  });
});

/** Longer than a test takes, and less. */
const held = { answerMs: 0, answeredMs: 0, waitMs: 60_000 };

async function told(grace: typeof held, afterMs = 0): Promise<string[]> {
  return (await changedModules(db, 100, new Date(Date.now() + afterMs), grace)).map(({ name }) => name);
}

describe('an input that only a person can bring about', () => {
  /** lib ← low ← top, all fit; lib's head, which low imports something new of, failed. */
  async function blocked(): Promise<void> {
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'low', 'a', { exports: ['x.org/low'], imports: ['x.org/lib'] });
    await moduleWith(db, 'top', 'a', { imports: ['x.org/low'] });
    for (const name of ['lib', 'low', 'top']) await buildFit(db, name);
    await moduleWith(db, 'lib', 'b', { exports: ['x.org/lib', 'x.org/fresh'] });
    await moduleWith(db, 'low', 'b', { exports: ['x.org/low'], imports: ['x.org/lib', 'x.org/fresh'] });
    await moduleWith(db, 'top', 'b', { imports: ['x.org/low'] });
  }

  const nextOf = async (name: string): Promise<string> => {
    const { next, needsPerson } = compare(await factsOf(db, name), times);
    return `${next.kind}${needsPerson ? ', needs a person' : ''}`;
  };

  it('is not waited for by what builds on its users, while it is not about to come', async () => {
    await blocked();
    expect([await nextOf('low'), await nextOf('top')]).toEqual(['wait', 'wait']);
    expect(await bumpedBy(db, () => buildFailed(db, 'lib'))).toEqual(['lib', 'low', 'top']);
    expect([await nextOf('low'), await nextOf('top')]).toEqual(['wait, needs a person', 'build']);
    expect(await bumpedBy(db, () => moduleWith(db, 'lib', 'c', { exports: ['x.org/lib', 'x.org/fresh'] }))).toEqual(['lib', 'low', 'top']);
    expect([await nextOf('low'), await nextOf('top')]).toEqual(['wait', 'wait']);
    expect(await bumpedBy(db, () => buildFit(db, 'lib', 'fresh'))).toEqual(['lib', 'low', 'top']);
    expect([await nextOf('low'), await nextOf('top')]).toEqual(['build', 'wait']);
  });

  it('is not waited for either while the new head of its user is not inspected, and that is told after', async () => {
    await blocked();
    await buildFailed(db, 'lib');
    expect(await bumpedBy(db, () => read(db, 'low', commitOf('c')))).not.toContain('top');
    expect(await nextOf('top')).toBe('build');
    expect(await bumpedBy(db, () => inspectCode(db, 'low', commitOf('c'), { exports: ['x.org/low'], imports: ['x.org/lib'] }))).toContain('top');
    expect([await nextOf('low'), await nextOf('top')]).toEqual(['build', 'wait']);
  });

  it('needs a person for all that cannot be built without it', async () => {
    await moduleWith(db, 'lib', 'a', { exports: ['x.org/lib'] });
    await moduleWith(db, 'low', 'a', { exports: ['x.org/low'], imports: ['x.org/lib'] });
    await moduleWith(db, 'top', 'a', { imports: ['x.org/low'] });
    expect([await nextOf('low'), await nextOf('top')]).toEqual(['wait', 'wait']);
    await buildFailed(db, 'lib');
    expect([await nextOf('low'), await nextOf('top')]).toEqual(['wait, needs a person', 'wait, needs a person']);
  });
});

describe('a module that waits', () => {
  it('is not told of every answer below it, and at once of the last', async () => {
    await diamond();
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'moved');
    for (const name of ['core', 'left', 'right', 'bottom']) await recordComparison(db, compare(await factsOf(db, name), times));
    expect(await bumpedBy(db, () => buildFit(db, 'left', 'left, moved'))).toContain('bottom');
    expect(await told(held)).not.toContain('bottom');
    expect(await told(held, held.waitMs)).toContain('bottom');
    await buildFit(db, 'right', 'right, moved');
    expect(await told(held)).toContain('bottom');
  });

  it('is not told that it began to, unless it goes on: in a cascade it will be free in a moment', async () => {
    await diamond();
    for (const name of ['core', 'left', 'right', 'bottom']) await recordComparison(db, compare(await factsOf(db, name), times));
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    expect(await told(held)).toEqual(['core']);
    expect(await bumpedBy(db, () => buildFit(db, 'core', 'moved'))).toContain('bottom');
    expect(await told(held)).toEqual(['core', 'left', 'right']);
    expect(await told(held, held.waitMs)).toContain('bottom');
    await read(db, 'bottom', commitOf('b'));
    expect(await told(held)).toContain('bottom');
  });

  it('for a build is not told of what moves meanwhile, since the answer wakes it, unless that lasts', async () => {
    await diamond();
    await moduleWith(db, 'left', 'b', { exports: ['x.org/left'], imports: ['x.org/core'] });
    await open(db, 'left');
    await recordComparison(db, compare(await factsOf(db, 'left'), times));
    const grace = { answerMs: 60_000, answeredMs: 60_000, waitMs: 0 };
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    expect(await told(grace)).not.toContain('left');
    expect(await told(grace, grace.answerMs)).toContain('left');
  });

  it('for a build that was answered just now is woken by the answer, and told if that was lost', async () => {
    await diamond();
    await moduleWith(db, 'bottom', 'b', { imports: ['x.org/left'] });
    const opened = await open(db, 'bottom');
    await recordComparison(db, compare(await factsOf(db, 'bottom'), times));
    await answerFit(db, opened, 'bottom');
    const grace = { answerMs: 0, answeredMs: 60_000, waitMs: 0 };
    expect(await told(grace)).not.toContain('bottom');
    expect(await told(grace, grace.answeredMs)).toContain('bottom');
  });

  it('for a build is told that a builder took it, though its inspection was answered just now', async () => {
    await diamond();
    await moduleWith(db, 'bottom', 'b', { imports: ['x.org/left'] });
    await open(db, 'bottom');
    await recordComparison(db, compare(await factsOf(db, 'bottom'), times));
    expect(await bumpedBy(db, () => db.query(`update request set state = 'taken', taken_by = 'b-1' where state = 'requested'`))).toEqual(['bottom']);
    expect(await told({ answerMs: 0, answeredMs: 60_000, waitMs: 0 })).toContain('bottom');
  });
});

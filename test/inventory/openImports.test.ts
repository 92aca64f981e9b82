import { compare } from '../../src/domain/comparison';
import { addModule, type Db, openInspection, recordAnswer, recordComparison, recordReading, removeModule } from '../../src/inventory';
import { lookAtUnreadAgain } from '../../src/inventory/modules';
import { answerFit, buildFit, bumpedBy, edges, factsOf, inspectCode, moduleWith, open } from './graphMesh';
import { commitOf, environment, openStore, read, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());
beforeEach(() => db.query('delete from module'));

const by = { who: 'ada', why: 'test' };

const openImport = async (module: string): Promise<string | null> => {
  const found = (await factsOf(db, module)).graph.openImport;
  return found === null ? null : `${found.name} ${found.file}:${found.line} ${found.module}${found.hasOthers ? ' and others' : ''}`;
};

/** Whom the change, and the look at what waits for code to be read that follows it, owes another comparison; all had been compared before. */
async function toldBy(change: () => Promise<unknown>): Promise<string[]> {
  const modules = await db.query<{ name: string }>('select name from module');
  for (const { name } of modules) await recordComparison(db, compare(await factsOf(db, name), times));
  return await bumpedBy(db, async () => {
    await change();
    await lookAtUnreadAgain(db, 100);
  });
}

const add = (name: string): Promise<void> => addModule(db, { name, repository: `file:///${name}.git`, ref: 'main' });

describe('an import that nobody exports', () => {
  it('is open while a module of the mesh has never been read, and an edge or of outside after', async () => {
    await add('core');
    await add('site');
    await moduleWith(db, 'greeter', 'a', { imports: ['x.org/core/p', 'world.org/json'] });
    expect(await openImport('greeter')).toBe('x.org/core/p a.go:1 site and others');
    await read(db, 'core', commitOf('a'));
    // Whose source has been read will be inspected before.
    expect(await openImport('greeter')).toBe('x.org/core/p a.go:1 site and others');
    expect(await toldBy(() => inspectCode(db, 'core', commitOf('a'), { exports: ['x.org/core'] }))).toEqual(['core', 'greeter']);
    expect(await edges(db)).toEqual(['greeter → core (out)']);
    expect(await openImport('greeter')).toBe('world.org/json a.go:2 site');
    await read(db, 'site', commitOf('a'));
    // It waits for core's first fit build, whatever site turns out to be.
    expect(await toldBy(() => inspectCode(db, 'site', commitOf('a'), {}))).toEqual(['site']);
    expect(await openImport('greeter')).toBeNull();
  });

  it('is not told of each module that turned out not to export it, only of the last', async () => {
    for (const name of ['one', 'two', 'three']) await add(name);
    await moduleWith(db, 'greeter', 'a', { imports: ['world.org/json'] });
    expect(await toldBy(() => moduleWith(db, 'one', 'a', {}))).toEqual(['one']);
    expect(await toldBy(() => moduleWith(db, 'three', 'a', {}))).toEqual(['three']);
    expect(await toldBy(() => moduleWith(db, 'two', 'a', {}))).toEqual(['greeter', 'two']);
  });

  it('is told once the one that its line names is inspected, though others are not, and not of each other one', async () => {
    for (const name of ['one', 'two', 'three']) await add(name);
    await moduleWith(db, 'greeter', 'a', { imports: ['world.org/json'] });
    const line = async (): Promise<string> => {
      const comparison = compare(await factsOf(db, 'greeter'), times);
      await recordComparison(db, comparison);
      return comparison.line.replace(/ since .*/, '');
    };
    expect(await line()).toContain('waiting for two (not inspected yet)');
    await moduleWith(db, 'one', 'a', {});
    expect(await bumpedBy(db, () => lookAtUnreadAgain(db, 100))).toEqual([]);
    await moduleWith(db, 'two', 'a', {});
    expect(await bumpedBy(db, () => lookAtUnreadAgain(db, 100))).toEqual(['greeter']);
    // Owed once, until it is compared.
    expect(await bumpedBy(db, () => lookAtUnreadAgain(db, 100))).toEqual([]);
    expect(await line()).toContain('waiting for three (not inspected yet)');
    await recordReading(db, 'three', { kind: 'unreadable', reason: 'no route to host' }, tick(), times);
    expect(await bumpedBy(db, () => lookAtUnreadAgain(db, 100))).toEqual(['greeter']);
    expect(await line()).not.toContain('not inspected yet');
    expect(await bumpedBy(db, () => lookAtUnreadAgain(db, 100))).toEqual([]);
  });

  it('of tests is open too: a build runs them', async () => {
    await add('core');
    await moduleWith(db, 'greeter', 'a', { imports: ['test:x.org/core'] });
    expect(await openImport('greeter')).toBe('x.org/core a_test.go:1 core');
  });

  it('is of outside once a build was fit without it, whoever comes after', async () => {
    await moduleWith(db, 'greeter', 'a', { imports: ['world.org/json'] });
    await buildFit(db, 'greeter');
    await add('core');
    await moduleWith(db, 'greeter', 'b', { imports: ['world.org/json'] });
    expect(await openImport('greeter')).toBeNull();
    await moduleWith(db, 'greeter', 'c', { imports: ['world.org/json', 'world.org/yaml'] });
    expect(await openImport('greeter')).toBe('world.org/yaml a.go:2 core');
  });

  it('is open again when the module that exported it is gone: another may be about to', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'greeter', 'a', { imports: ['x.org/core'] });
    await buildFit(db, 'greeter');
    await add('kernel');
    await removeModule(db, 'core', by);
    expect(await openImport('greeter')).toBe('x.org/core a.go:1 kernel');
    expect(await toldBy(() => moduleWith(db, 'kernel', 'a', { exports: ['x.org/core'] }))).toEqual(['greeter', 'kernel']);
    expect(await edges(db)).toEqual(['greeter → kernel (out)']);
  });

  it('that was of outside, then of a module, is open again without that one', async () => {
    await moduleWith(db, 'greeter', 'a', { imports: ['x.org/core'] });
    await buildFit(db, 'greeter', 'alone');
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'greeter', 'b', { imports: ['x.org/core'] });
    await buildFit(db, 'greeter', 'with core');
    await add('kernel');
    await removeModule(db, 'core', by);
    expect(await openImport('greeter')).toBe('x.org/core a.go:1 kernel');
  });

  it('is not taken for one of outside by a build that had it, and ends after that is gone', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'greeter', 'a', { imports: ['x.org/core'] });
    const running = await open(db, 'greeter');
    await removeModule(db, 'core', by);
    await answerFit(db, running, 'greeter');
    await add('kernel');
    expect(await openImport('greeter')).toBe('x.org/core a.go:1 kernel');
  });

  it('is open while the head of a module that moved before it is not inspected, and not for what moves later', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await read(db, 'core', commitOf('b'));
    await moduleWith(db, 'greeter', 'a', { imports: ['x.org/kernel'] });
    expect(await openImport('greeter')).toBe('x.org/kernel a.go:1 core');
    await read(db, 'core', commitOf('c'));
    expect(await openImport('greeter')).toBe('x.org/kernel a.go:1 core');
    expect(await toldBy(() => inspectCode(db, 'core', commitOf('c'), { exports: ['x.org/kernel'] }))).toEqual(['core', 'greeter']);
    expect(await edges(db)).toEqual(['greeter → core (out)']);

    await buildFit(db, 'core', 'kernel');
    await moduleWith(db, 'other', 'a', { imports: ['world.org/json'] });
    await read(db, 'core', commitOf('d'));
    expect(await openImport('other')).toBeNull();
    expect(await toldBy(() => inspectCode(db, 'core', commitOf('d'), { exports: ['x.org/kernel'] }))).not.toContain('other');
  });

  it('is told too where the one that its line names was inspected and moved again before anybody looked', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await read(db, 'core', commitOf('b'));
    await moduleWith(db, 'greeter', 'a', { imports: ['x.org/kernel'] });
    const again = async (): Promise<void> => {
      await inspectCode(db, 'core', commitOf('b'), { exports: ['x.org/core'] });
      await buildFit(db, 'core');
      await read(db, 'core', commitOf('c'));
    };
    expect(await toldBy(again)).toEqual(['core', 'greeter']);
    expect(await openImport('greeter')).toBeNull();
  });

  describe('is waited on no more', () => {
    beforeEach(async () => {
      await add('core');
      await moduleWith(db, 'greeter', 'a', { imports: ['x.org/core'] });
      expect(await openImport('greeter')).not.toBeNull();
    });

    it('when the source of the last that may export it cannot be read, and is when it can again', async () => {
      const unreadable = { kind: 'unreadable', reason: 'no route to host' } as const;
      expect(await toldBy(() => recordReading(db, 'core', unreadable, tick(), times))).toEqual(['core', 'greeter']);
      expect(await openImport('greeter')).toBeNull();
      expect(await toldBy(() => recordReading(db, 'core', unreadable, tick(), times))).toEqual([]);
      await read(db, 'core', commitOf('a'));
      expect(await openImport('greeter')).toBe('x.org/core a.go:1 core');
    });

    it('when the last that may export it is taken out of the mesh', async () => {
      expect(await toldBy(() => removeModule(db, 'core', by))).toEqual(['greeter']);
      expect(await openImport('greeter')).toBeNull();
    });

    it('when that turns out invalid', async () => {
      await read(db, 'core', commitOf('a'));
      const request = (await openInspection(db, 'core', commitOf('a'))) ?? '';
      const at = '2026-11-29T12:00:00.000Z';
      const problems = [{ file: 'module.yaml', line: 1, key: '', message: 'no' }];
      const answer = { v: 1, kind: 'inspect', outcome: 'invalid', request, attempt: 1, builder: 'b', startedAt: at, endedAt: at, problems } as const;
      expect(await toldBy(() => recordAnswer(db, answer, tick(), times))).toEqual(['core', 'greeter']);
      expect(await openImport('greeter')).toBeNull();
    });
  });

  it('has its progress from what is to be inspected; an inspection that the environment keeps ending is none', async () => {
    await add('core');
    await read(db, 'core', commitOf('a'));
    const request = (await openInspection(db, 'core', commitOf('a'))) ?? '';
    await moduleWith(db, 'greeter', 'a', { imports: ['x.org/core'] });
    const progress = async (): Promise<string | undefined> => (await factsOf(db, 'greeter')).graph.openImport?.progressAt;
    const [head] = await db.query<{ since: Date; requested: Date }>(
      'select m.head_since as since, r.requested_at as requested from module m join request r on r.module = m.name and r.id = $1',
      [request],
    );
    const later = (...dates: Array<Date | undefined>): string => new Date(Math.max(...dates.map((date) => date?.getTime() ?? 0))).toISOString();
    expect(await progress()).toBe(later(head?.since, head?.requested));
    const taken = tick();
    await db.query(`update request set state = 'taken', taken_at = $2, taken_by = 'b' where id = $1`, [request, taken]);
    expect(await progress()).toBe(taken.toISOString());
    await recordAnswer(db, { ...environment(request), kind: 'inspect' } as Parameters<typeof recordAnswer>[1], tick(), times);
    await db.query(`update request set state = 'taken', taken_at = $2 where id = $1`, [request, tick()]);
    expect(await progress()).toBe(head?.since.toISOString());
  });
});

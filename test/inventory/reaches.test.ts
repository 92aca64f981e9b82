import { compare } from '../../src/domain/comparison';
import { type Db, recordAnswer } from '../../src/inventory';
import type { Answer } from '../../src/schema/messages';
import { buildFit, factsOf, moduleWith, open } from './graphMesh';
import { environment, failed, openStore, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());
beforeEach(() => db.query('delete from module'));

describe('a build that reaches for a module of the mesh outside of its closure', () => {
  it('has failed with that said, whatever step it was', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await moduleWith(db, 'lib', 'a', {});
    const reason = 'reaches for core (x.org/core), which is not in its closure: import it in code that Tally can read';
    const missing = [
      { language: 'go' as const, name: 'x.org/core/sub' },
      { language: 'go' as const, name: 'x.org/core' },
    ];
    const fetching = await open(db, 'lib');
    expect(await recordAnswer(db, { ...environment(fetching.id), missing } as Answer, tick(), times)).toMatchObject({
      final: true,
      outcome: 'failed',
    });
    expect((await factsOf(db, 'lib')).headBuild).toMatchObject({ verdict: 'failed', reason });
    await moduleWith(db, 'lib', 'b', {});
    const running = await open(db, 'lib');
    await recordAnswer(db, failed(running.id, { step: 'run', missing }), tick(), times);
    expect((await factsOf(db, 'lib')).headBuild).toMatchObject({ verdict: 'failed', reason });
  });

  it('has not failed where that became an input of it while it was built: it is built again with it', async () => {
    await moduleWith(db, 'lib', 'a', { imports: ['x.org/core'] });
    const running = await open(db, 'lib');
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    const missing = [{ language: 'go' as const, name: 'x.org/core' }];
    expect(await recordAnswer(db, failed(running.id, { step: 'run', missing }), tick(), times)).toMatchObject({ final: true, outcome: 'cancelled' });
    expect(await db.query('select verdict from build')).toEqual([{ verdict: null }]);
    await buildFit(db, 'core');
    const { next } = compare(await factsOf(db, 'lib'), times);
    expect(next).toMatchObject({ kind: 'build', requestId: null });
    expect((await open(db, 'lib')).inputs.map(({ module }) => module)).toEqual(['core']);
  });

  it('nor where the name is an input by what the effective build exports, though the head moved it elsewhere', async () => {
    await moduleWith(db, 'lib', 'a', { imports: ['x.org/core'] });
    const running = await open(db, 'lib');
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'core', 'b', { exports: ['more=x.org/core'] });
    const missing = [{ language: 'go' as const, name: 'x.org/core' }];
    await recordAnswer(db, failed(running.id, { step: 'run', missing }), tick(), times);
    expect((await open(db, 'lib')).inputs.map(({ module }) => module)).toEqual(['core']);
  });

  it('has failed where only a build that is effective still exports it, and no code imports it', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'core', 'b', { exports: ['x.org/kernel'] });
    await moduleWith(db, 'lib', 'a', {});
    const running = await open(db, 'lib');
    const missing = [{ language: 'go' as const, name: 'x.org/core' }];
    await recordAnswer(db, { ...environment(running.id), missing } as Answer, tick(), times);
    expect((await factsOf(db, 'lib')).headBuild).toMatchObject({
      verdict: 'failed',
      reason: expect.stringContaining('reaches for core (x.org/core)'),
    });
  });

  it('waits for what only a head exports by then, and has not failed for want of it', async () => {
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await buildFit(db, 'core');
    await moduleWith(db, 'lib', 'a', { imports: ['x.org/core', 'x.org/fresh'] });
    const running = await open(db, 'lib');
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core', 'x.org/fresh'] });
    const missing = [{ language: 'go' as const, name: 'x.org/fresh' }];
    await recordAnswer(db, failed(running.id, { step: 'run', missing, inputs: [...running.inputs] }), tick(), times);
    const { next, line } = compare(await factsOf(db, 'lib'), times);
    expect(next.kind).toBe('wait');
    expect(line).toContain('waiting for core (at aaaaaaa does not export x.org/fresh');
    expect(await db.query('select verdict from build where id = $1', [running.id])).toEqual([{ verdict: null }]);
  });

  it('is a trouble of the environment where the code imports it, and a head that was never fit claims it', async () => {
    await moduleWith(db, 'lib', 'a', { imports: ['x.org/fresh'] });
    await buildFit(db, 'lib');
    await moduleWith(db, 'core', 'a', { exports: ['x.org/fresh'] });
    await moduleWith(db, 'lib', 'b', { imports: ['x.org/fresh'] });
    const running = await open(db, 'lib');
    const missing = [{ language: 'go' as const, name: 'x.org/fresh' }];
    expect(await recordAnswer(db, { ...environment(running.id), missing } as Answer, tick(), times)).toMatchObject({ final: false });
  });

  it('is a trouble of the environment when the name is of none', async () => {
    await moduleWith(db, 'lib', 'a', {});
    const opened = await open(db, 'lib');
    const missing = [{ language: 'go' as const, name: 'golang.org/x/net' }];
    expect(await recordAnswer(db, { ...environment(opened.id), missing } as Answer, tick(), times)).toMatchObject({ final: false });
  });
});

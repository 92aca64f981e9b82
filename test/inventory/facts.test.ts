import { closureOf as closureInDomain } from '../../src/domain/closure';
import { compare } from '../../src/domain/comparison';
import {
  addModule,
  addToken,
  assign,
  beatRequests,
  changedModules,
  countChanged,
  type Db,
  declareBuild,
  dueRepositories,
  expectChange,
  getMesh,
  listModules,
  markNudged,
  migrate,
  moduleStatuses,
  openInspection,
  openInventory,
  recordAnswer,
  recordComparison,
  recordReading,
  removeModule,
  setFacts,
  setSetting,
  setWebhookSecret,
  sweepModules,
  unassign,
  webhookModules,
  whoIs,
} from '../../src/inventory';
import { eventually } from '../support/eventually';
import {
  A,
  B,
  closureOf,
  digest,
  facts,
  fitAnswer,
  fitBuild,
  inspect,
  module,
  node,
  openStore,
  read,
  requestBuild,
  takeBuild,
  tick,
  times,
} from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

async function versions(): Promise<Record<string, number>> {
  return Object.fromEntries(
    (await db.query<{ name: string; version: number }>('select name, facts_version as version from module')).map((row) => [row.name, row.version]),
  );
}

/** The modules whose version `change` moved. */
async function bumpedBy(change: () => Promise<unknown>): Promise<string[]> {
  const before = await versions();
  await change();
  const after = await versions();
  return Object.keys(after)
    .filter((name) => after[name] !== before[name])
    .sort();
}

describe('migrations', () => {
  it('are applied once, by however many processes at the same time', async () => {
    const { url: fresh } = await openStore();
    expect(await Promise.all([migrate(fresh), migrate(fresh), migrate(fresh)])).toEqual([[], [], []]);
  });
});

describe('a store that is away', () => {
  it('is an environmental trouble of the call', async () => {
    const away = openInventory('postgresql://nobody@127.0.0.1:9/none');
    await expect(away.query('select 1')).rejects.toMatchObject({ kind: 'environment', message: expect.stringContaining('the store did not answer') });
    await away.close();
  });

  it('runs a transaction again whose connection was cut, also between two statements', async () => {
    let tries = 0;
    const seen = await db.transaction(async (tx) => {
      tries += 1;
      const [own] = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
      if (tries === 1) {
        await db.query('select pg_terminate_backend($1)', [own?.pid]);
        await eventually(async () => (await db.query('select from pg_stat_activity where pid = $1', [own?.pid])).length === 0);
      }
      return tx.query<{ one: number }>('select 1 as one');
    });
    expect([tries, seen]).toEqual([2, [{ one: 1 }]]);
  });

  it('runs a transaction again after a deadlock', async () => {
    await module(db, 'lock-a');
    await module(db, 'lock-b');
    const [one, two] = [gate(), gate()];
    let tries = 0;
    const crossing = (first: string, second: string, own: Gate, other: Gate) =>
      db.transaction(async (tx) => {
        tries += 1;
        await tx.query('update module set line = $2 where name = $1', [first, 'x']);
        own.resolve();
        await other.promise;
        await tx.query('update module set line = $2 where name = $1', [second, 'x']);
      });
    await Promise.all([crossing('lock-a', 'lock-b', one, two), crossing('lock-b', 'lock-a', two, one)]);
    expect(tries).toBe(3);
  });
});

interface Gate {
  promise: Promise<void>;
  resolve: () => void;
}
function gate(): Gate {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

describe('settings and tokens', () => {
  it('default to a mesh called home that asks', async () => {
    expect(await getMesh(db)).toEqual({ name: 'home', declareDefault: 'ask' });
    await setSetting(db, 'declareDefault', 'auto');
    expect(await getMesh(db)).toEqual({ name: 'home', declareDefault: 'auto' });
    await setSetting(db, 'declareDefault', 'ask');
  });

  it('know whose token it is, keep no token, and forget the one before', async () => {
    const token = await addToken(db, 'ada');
    expect(await whoIs(db, token)).toBe('ada');
    expect(JSON.stringify(await db.query('select * from token'))).not.toContain(token);
    await addToken(db, 'ada');
    expect(await whoIs(db, token)).toBeNull();
  });
});

describe('the closure', () => {
  it('is the same in the domain and in SQL', async () => {
    const [row] = await db.query<{ closure: string }>('select closure_of($1) as closure', [A]);
    expect(row?.closure).toBe(closureInDomain({ commit: A, inputs: [] }, digest));
  });
});

describe('the facts of a module', () => {
  it('begin empty and total, and grow into what the comparison needs', async () => {
    await module(db, 'grow');
    expect(compare(await facts(db, 'grow'), times)).toMatchObject({ situation: 'settling', next: { kind: 'wait' } });
    await read(db, 'grow', A);
    expect(compare(await facts(db, 'grow'), times).next).toEqual({ kind: 'inspect', commit: A, requestId: null });
    const inspection = await openInspection(db, 'grow', A);
    expect(compare(await facts(db, 'grow'), times).next).toEqual({ kind: 'inspect', commit: A, requestId: inspection });
    await inspect(db, 'grow', A, { declare: 'ask' });
    expect((await facts(db, 'grow')).closure).toBe(closureOf(A));
    const build = await requestBuild(db, 'grow', A);
    await takeBuild(db, build);
    expect(await facts(db, 'grow')).toMatchObject({
      requests: [{ id: build, state: 'taken', takenBy: 'builder-1', trouble: null, isSuspect: false, isStopping: false }],
    });
    await recordAnswer(db, fitAnswer(build), tick(), times);
    const found = await facts(db, 'grow');
    expect(found).toMatchObject({
      headBuild: { id: build, verdict: 'fit', tryNumber: 1 },
      effective: { id: build },
      effectiveDeclare: 'ask',
      requests: [],
      placements: [],
      again: null,
    });
    expect(found.now).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(found.source.head?.since).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(compare(found, times).situation).toBe('in step');
  });

  it('say what is invalid with file, line and key', async () => {
    await module(db, 'broken');
    await read(db, 'broken', A);
    const request = (await openInspection(db, 'broken', A)) ?? '';
    const problems = [{ file: 'module.yaml', line: 3, key: 'build.rum', message: 'unknown key: did you mean run?' }];
    await recordAnswer(
      db,
      {
        v: 1,
        kind: 'inspect',
        outcome: 'invalid',
        request,
        attempt: 1,
        builder: 'b',
        startedAt: '2026-11-29T12:00:00Z',
        endedAt: '2026-11-29T12:00:00Z',
        problems,
      },
      tick(),
      times,
    );
    expect((await facts(db, 'broken')).inspection).toMatchObject({
      outcome: 'invalid',
      problems: ['module.yaml:3 build.rum: unknown key: did you mean run?'],
    });
    expect((await facts(db, 'broken')).closure).toBeNull();
  });

  it('name the builder of the needed platform that was seen last', async () => {
    await beatRequests(
      db,
      [{ v: 1, builder: 'arm', platforms: ['linux-arm64'], at: '2026-11-29T12:00:00Z', publicKey: 'k', version: '1', busy: [] }],
      tick(),
    );
    expect((await facts(db, 'grow')).builderSeenAt).toBeNull();
    const now = tick();
    await beatRequests(
      db,
      [{ v: 1, builder: 'amd', platforms: ['linux-amd64'], at: '2026-11-29T12:00:00Z', publicKey: 'k', version: '1', busy: [] }],
      now,
    );
    expect((await facts(db, 'grow')).builderSeenAt).toBe(now.toISOString());
  });
});

describe('a version', () => {
  beforeAll(async () => {
    for (const name of ['one', 'two', 'three']) {
      await module(db, name);
      await fitBuild(db, name, A);
    }
    await node(db, 'shared', 'one', 'two');
    await node(db, 'alone', 'one');
  });

  it.each<[string, () => Promise<unknown>, string[]]>([
    ['the same head read again', () => read(db, 'one', A), []],
    ['a repository that cannot be read', () => recordReading(db, 'one', { kind: 'unreadable', reason: 'HTTP 500' }, tick(), times), ['one']],
    ['the same trouble again', () => recordReading(db, 'one', { kind: 'unreadable', reason: 'HTTP 500' }, tick(), times), []],
    ['a new head', () => read(db, 'one', B), ['one']],
    ['an assignment', () => assign(db, 'three', 'alone', { who: 'ada', why: 'x' }), ['three']],
    ['an assignment that was there', () => assign(db, 'three', 'alone', { who: 'ada', why: 'x' }), []],
    ['what is unassigned', () => unassign(db, 'three', 'alone', { who: 'ada', why: 'x' }), ['three']],
    ["a node's facts, with nothing owed by it", () => setFacts(db, 'shared', { port: '1' }), []],
    [
      "a builder's beat",
      () =>
        beatRequests(
          db,
          [{ v: 1, builder: 'b', platforms: ['linux-amd64'], at: '2026-11-29T12:00:00Z', publicKey: 'k', version: '1', busy: [] }],
          tick(),
        ),
      [],
    ],
    ['a webhook', () => expectChange(db, ['one'], tick()), []],
    ['a webhook secret', () => setWebhookSecret(db, 'one', 'sealed'), []],
    ['the default of declaring that was so', () => setSetting(db, 'declareDefault', 'ask'), []],
  ])('is moved by %s for exactly the modules it is about', async (_what, change, expected) => {
    expect((await bumpedBy(change)).filter((name) => ['one', 'two', 'three'].includes(name))).toEqual(expected);
  });

  it('is moved for the one module that is declared, and for every one by the default of declaring', async () => {
    const { effective } = await facts(db, 'two');
    expect(await bumpedBy(() => declareBuild(db, { module: 'two', buildId: effective?.id ?? '', nodes: ['shared'], by: 'auto' }))).toEqual(['two']);
    expect(await bumpedBy(() => declareBuild(db, { module: 'two', buildId: effective?.id ?? '', nodes: ['shared'], by: 'auto' }))).toEqual([]);
    expect(await bumpedBy(() => setSetting(db, 'declareDefault', 'auto'))).toEqual((await listModules(db)).map((one) => one.name));
  });

  it('is not moved by the beat of a request, and is by its step', async () => {
    await inspect(db, 'one', B);
    const id = await requestBuild(db, 'one', B);
    await takeBuild(db, id);
    const beat = (step: string) =>
      beatRequests(
        db,
        [
          {
            v: 1,
            builder: 'builder-1',
            platforms: ['linux-amd64'],
            at: '2026-11-29T12:00:00Z',
            publicKey: 'k',
            version: '1',
            busy: [{ request: id, attempt: 1, step, since: '2026-11-29T12:00:00Z' }],
          },
        ],
        tick(),
      );
    expect(await bumpedBy(() => beat('run'))).toEqual(['one']);
    expect(await bumpedBy(() => beat('run'))).toEqual([]);
  });
});

const atOnce = { answerMs: 0, answeredMs: 0, waitMs: 0 };

describe('what is nudged', () => {
  it('is looked at in the order of how long it is owed, so that no name keeps another one waiting', async () => {
    const names = ['aa', 'bb', 'cc'];
    for (const name of names) await addModule(db, { name, repository: `file:///${name}.git`, ref: 'main' });
    await db.query(`update module set compared_version = facts_version where not name = any ($1)`, [names]);
    const owed = { aa: 1, bb: 3, cc: 2 };
    for (const [name, minutes] of Object.entries(owed))
      await db.query(`update module set changed_at = now() - $2::int * interval '1 minute' where name = $1`, [name, minutes]);
    expect((await changedModules(db, 2, new Date(), atOnce)).map(({ name }) => name)).toEqual(['bb', 'cc']);
    await db.query(`update module set due_at = now() - interval '150 seconds', compared_version = facts_version where name = 'aa'`);
    expect((await sweepModules(db, 2, new Date(), new Date())).map(({ name }) => name)).toEqual(['bb', 'aa']);
    await db.query('delete from module where name = any ($1)', [names]);
  });

  it('is what moved since it was compared and nudged; the sweep takes it anyway, and what is due', async () => {
    await db.query('update module set compared_version = facts_version, nudged_version = facts_version');
    expect(await changedModules(db, 10, new Date(), atOnce)).toEqual([]);
    await read(db, 'grow', B);
    const changed = await changedModules(db, 10, new Date(), atOnce);
    expect(changed).toMatchObject([{ name: 'grow', repository: 'file:///grow.git' }]);
    await markNudged(db, changed);
    expect(await changedModules(db, 10, new Date(), atOnce)).toEqual([]);
    expect(await countChanged(db)).toBe(1);
    const found = await facts(db, 'grow');
    const now = tick();
    expect(await sweepModules(db, 10, now, now)).toMatchObject([{ name: 'grow' }]);
    await recordComparison(db, { ...compare(found, times), until: new Date(now.getTime() + 60_000).toISOString() }, now);
    expect(await sweepModules(db, 10, now, now)).toEqual([]);
    expect(await sweepModules(db, 10, new Date(now.getTime() + 60_000), now)).toMatchObject([{ name: 'grow' }]);
    expect(await moduleStatuses(db, ['grow'])).toMatchObject([{ module: 'grow', situation: 'settling', next: 'inspect', head: B }]);
  });

  it('is compared to the version that was compared, and an older comparison does not replace a newer one', async () => {
    const old = await facts(db, 'grow');
    await recordReading(db, 'grow', { kind: 'absent', reason: 'the branch is gone' }, tick(), times);
    await recordComparison(db, compare(old, times));
    expect(await countChanged(db)).toBe(1);
    const fresh = await facts(db, 'grow');
    await recordComparison(db, compare(fresh, times));
    await recordComparison(db, compare(old, times));
    expect(await countChanged(db)).toBe(0);
    expect(await moduleStatuses(db, ['grow'])).toMatchObject([{ reason: expect.not.stringContaining('not compared') }]);
  });
});

describe('readings', () => {
  it('lease what is due, oldest first, once', async () => {
    await db.query(`update module set next_read_at = '2100-01-01' where name <> 'grow'`);
    await db.query(`update module set next_read_at = '2000-01-01' where name = 'grow'`);
    const now = tick();
    const [first, second] = await Promise.all([dueRepositories(db, 5, now), dueRepositories(db, 5, now)]);
    expect([...first, ...second]).toEqual([{ module: 'grow', repository: 'file:///grow.git', ref: 'main' }]);
    expect(await dueRepositories(db, 5, now)).toEqual([]);
  });

  it('come every two seconds after an event, until the head moves or a minute is over', async () => {
    await read(db, 'grow', A);
    const dueIn = async (now: Date): Promise<number> => {
      const [row] = await db.query<{ at: Date }>(`select next_read_at as at from module where name = 'grow'`);
      return ((row?.at.getTime() ?? 0) - now.getTime()) / 1_000;
    };
    const at = tick();
    await expectChange(db, ['grow'], at);
    await recordReading(db, 'grow', { kind: 'head', commit: A }, at, times);
    expect(await dueIn(at)).toBe(2);
    await recordReading(db, 'grow', { kind: 'head', commit: B }, at, times);
    expect(await dueIn(at)).toBeGreaterThan(50);
    await expectChange(db, ['grow'], at);
    const later = new Date(at.getTime() + 61_000);
    await recordReading(db, 'grow', { kind: 'head', commit: B }, later, times);
    expect(await dueIn(later)).toBeGreaterThan(50);
  });

  it('keep head and since of a trouble while it lasts, and its words', async () => {
    const since = tick();
    await recordReading(db, 'grow', { kind: 'unreadable', reason: 'HTML instead of git' }, since, times);
    await recordReading(db, 'grow', { kind: 'unreadable', reason: 'no route' }, tick(), times);
    expect((await facts(db, 'grow')).source).toMatchObject({
      head: { commit: B },
      trouble: { kind: 'unreadable', reason: 'no route', since: since.toISOString() },
    });
    await read(db, 'grow', B);
    expect((await facts(db, 'grow')).source.trouble).toBeNull();
  });
});

describe('modules', () => {
  it('keep the sealed secrets of their webhooks', async () => {
    expect(await webhookModules(db)).toEqual([{ module: 'one', repository: 'file:///one.git', sealedSecret: 'sealed' }]);
    await expect(setWebhookSecret(db, 'nobody', 'x')).rejects.toMatchObject({ kind: 'usage' });
  });

  it('are added once and removed with everything, wherever they are declared', async () => {
    await expect(module(db, 'two')).rejects.toMatchObject({ kind: 'usage', message: 'module two exists already: tally module show two' });
    const [before] = await db.query<{ version: number }>(`select version from node where name = 'shared'`);
    await removeModule(db, 'two', { who: 'ada', why: 'over' });
    expect((await listModules(db)).map((one) => one.name)).not.toContain('two');
    const [after] = await db.query<{ version: number }>(`select version from node where name = 'shared'`);
    expect(after?.version).toBeGreaterThan(before?.version ?? 0);
    await expect(removeModule(db, 'two', { who: 'ada', why: 'over' })).rejects.toMatchObject({ kind: 'usage' });
  });
});

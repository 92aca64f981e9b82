import {
  appendLog,
  cancelRequests,
  type Db,
  latestRequest,
  previousFitBuild,
  prune,
  readLog,
  recordAnswer,
  recordIntent,
  resolveBuild,
} from '../../src/inventory';
import type { Answer } from '../../src/schema/messages';
import {
  A,
  B,
  commitOf,
  digest,
  environment,
  facts,
  failed,
  fitAnswer,
  fitBuild,
  freshModule,
  inspect,
  openStore,
  read,
  requestBuild,
  takeBuild,
  tick,
  times,
  valid,
} from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

describe('cancelling', () => {
  it('of what is superseded leaves no verdict behind, and the commit is built when it comes back', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await cancelRequests(db, [id], 'superseded');
    expect(await facts(db, name)).toMatchObject({ headBuild: null, requests: [] });
    const next = await requestBuild(db, name, A);
    await recordAnswer(db, fitAnswer(next), tick(), times);
    expect((await facts(db, name)).headBuild).toMatchObject({ id: next, tryNumber: 1 });
  });

  it('by an operator is a decision: failed, and not built again unasked', async () => {
    const name = await freshModule(db);
    const waiting = await requestBuild(db, name, A);
    const ask = { id: `cancel-${name}`, verb: 'cancel' as const, module: name, node: null, buildId: null, who: 'ada', why: 'wrong branch' };
    expect(await recordIntent(db, ask)).toBe('the build of aaaaaaa is cancelled');
    expect((await facts(db, name)).headBuild).toMatchObject({ id: waiting, verdict: 'failed', reason: 'cancelled by ada: wrong branch' });
    await expect(recordIntent(db, { ...ask, id: 'other' })).rejects.toMatchObject({ kind: 'usage' });
  });

  it('of what runs is told to the builder, whose answer changes nothing any more', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await takeBuild(db, id);
    const ask = { id: `cancel-${name}`, verb: 'cancel' as const, module: name, node: null, buildId: id, who: 'ada', why: 'enough' };
    expect(await recordIntent(db, ask)).toBe('the build of aaaaaaa is told to stop');
    expect(await recordIntent(db, ask)).toBe('the build of aaaaaaa is told to stop');
    const cancelled: Answer = {
      v: 1,
      request: id,
      attempt: 1,
      builder: 'builder-1',
      startedAt: '2026-11-29T12:00:00Z',
      endedAt: '2026-11-29T12:00:00Z',
      kind: 'build',
      outcome: 'cancelled',
      reason: 'told to',
      log: null,
      steps: {},
    };
    expect(await recordAnswer(db, cancelled, tick(), times)).toMatchObject({ final: true, outcome: 'failed' });
    expect((await facts(db, name)).headBuild).toMatchObject({ reason: 'cancelled by ada: enough' });
  });

  it('that nobody asked for is the environment: a builder that was shut down', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await takeBuild(db, id);
    const stopped: Answer = {
      v: 1,
      request: id,
      attempt: 1,
      builder: 'builder-1',
      startedAt: '2026-11-29T12:00:00Z',
      endedAt: '2026-11-29T12:00:00Z',
      kind: 'build',
      outcome: 'cancelled',
      reason: 'shut down',
      log: null,
      steps: {},
    };
    expect(await recordAnswer(db, stopped, tick(), times)).toMatchObject({ final: false, retry: { reason: 'shut down' } });
  });
});

describe('what is effective', () => {
  it('is the fit build of the head: a slow older one that ends last replaces nothing', async () => {
    const name = await freshModule(db);
    const slow = await requestBuild(db, name, A);
    await takeBuild(db, slow);
    const quick = await fitBuild(db, name, B);
    await recordAnswer(db, fitAnswer(slow), tick(), times);
    expect(await facts(db, name)).toMatchObject({ effective: { id: quick }, headBuild: { id: quick } });
  });

  it('stays what it was when the head fails or is invalid', async () => {
    const name = await freshModule(db);
    const good = await fitBuild(db, name, A);
    await read(db, name, B);
    expect(await facts(db, name)).toMatchObject({ effective: { id: good }, headBuild: null });
    await inspect(db, name, B);
    await recordAnswer(db, failed(await requestBuild(db, name, B)), tick(), times);
    expect(await facts(db, name)).toMatchObject({ effective: { id: good }, headBuild: { verdict: 'failed' } });
  });

  it('follows a force-push back to an older fit commit at once', async () => {
    const name = await freshModule(db);
    const older = await fitBuild(db, name, A);
    const newer = await fitBuild(db, name, B);
    expect((await facts(db, name)).effective?.id).toBe(newer);
    await read(db, name, A);
    expect(await facts(db, name)).toMatchObject({ effective: { id: older }, headBuild: { id: older, verdict: 'fit' } });
  });
});

describe('builds by name', () => {
  it('are found by id and by the start of a commit, and what is ambiguous is said', async () => {
    const name = await freshModule(db);
    const first = await fitBuild(db, name, `ab${'1'.repeat(38)}`);
    const second = await fitBuild(db, name, `ab${'2'.repeat(38)}`);
    expect(await resolveBuild(db, name, first)).toMatchObject({ id: first });
    expect(await resolveBuild(db, name, 'ab2')).toMatchObject({ id: second, verdict: 'fit' });
    await expect(resolveBuild(db, name, 'ab')).rejects.toMatchObject({
      kind: 'usage',
      message: `ab could be ab11111 or ab22222 of ${name}: say more of it`,
    });
    await expect(resolveBuild(db, name, 'ffff')).rejects.toMatchObject({ kind: 'usage' });
    expect(await previousFitBuild(db, name)).toMatchObject({ id: first });
  });
});

describe('attempts without end', () => {
  it('are kept bounded, and the build goes on', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    for (let attempt = 1; attempt <= 25; attempt += 1) await recordAnswer(db, environment(id, attempt), tick(), times);
    await prune(db);
    expect(await db.query('select from answer where request_id = $1', [id])).toHaveLength(19);
    expect(await recordAnswer(db, environment(id, 1), tick(), times)).toMatchObject({ first: true, final: false, retry: null });
    expect(await recordAnswer(db, fitAnswer(id, { attempt: 26 }), tick(), times)).toMatchObject({ final: true, outcome: 'fit' });
  });
});

describe('the log of what runs', () => {
  it('is kept line by line, once, its newest five thousand, until it is answered', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await takeBuild(db, id);
    const lines = (from: number, count: number) => ({
      v: 1 as const,
      request: id,
      attempt: 1,
      from,
      lines: Array.from({ length: count }, (_, i) => `line ${from + i}\0`),
    });
    await appendLog(db, [lines(0, 500), lines(0, 500)]);
    const page = await readLog(db, id, null);
    expect(page).toMatchObject({ module: name, state: 'taken', verdict: null, next: { attempt: 1, number: 500 } });
    expect(page?.lines.at(-1)).toEqual({ attempt: 1, number: 499, text: 'line 499' });
    await appendLog(
      db,
      Array.from({ length: 11 }, (_, i) => lines(500 * (i + 1), 500)),
    );
    expect((await readLog(db, id, null))?.lines[0]?.number).toBe(1_000);
    expect((await readLog(db, id, { attempt: 1, number: 5_999 }))?.lines).toHaveLength(1);
    expect(await latestRequest(db, name, null)).toBe(id);
    await recordAnswer(db, fitAnswer(id, { log: digest('log') }), tick(), times);
    await appendLog(db, [lines(6_000, 1)]);
    expect(await readLog(db, id, null)).toMatchObject({ verdict: 'fit', log: digest('log'), lines: [] });
    expect(await latestRequest(db, name, commitOf('f'))).toBeNull();
    expect(await readLog(db, 'unknown', null)).toBeNull();
  });
});

describe('what machines write', () => {
  it('may hold characters that the store cannot', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await recordAnswer(db, failed(id, { reason: 'half \ud83d and NUL \0 and \\u0000 written out' }), tick(), times);
    const [row] = await db.query<{ body: { reason: string } }>('select body from answer where request_id = $1', [id]);
    expect(row?.body.reason).toBe('half \ufffd and NUL  and \\u0000 written out');
    expect((await facts(db, name)).headBuild?.reason).toBe('half \ufffd and NUL  and \\u0000 written out');
    expect(await recordAnswer(db, valid('unknown', {}), tick(), times)).toMatchObject({ module: null, final: true });
  });
});

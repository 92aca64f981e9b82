import fc from 'fast-check';
import { compare } from '../../src/domain/comparison';
import {
  beatRequests,
  beginPublish,
  cancelRequests,
  claimRequest,
  type Db,
  markCompleted,
  markPublished,
  moduleDetail,
  openBuild,
  openInspection,
  overdueRequests,
  recordAnswer,
  recordIntent,
  recordPublishFailure,
} from '../../src/inventory';
import type { Answer } from '../../src/schema/messages';
import { A, B, closureOf, environment, facts, failed, fitAnswer, freshModule, openStore, requestBuild, takeBuild, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const beatOf = (builder: string, busy: Array<{ request: string; attempt: number; step: string; since: string }> = []) => ({
  v: 1 as const,
  builder,
  platforms: ['linux-amd64'],
  at: '2026-11-29T12:00:00Z',
  publicKey: 'k',
  version: '1',
  busy,
});
const claimOf = (request: string, builder: string, attempt = 1) => ({ v: 1 as const, request, attempt, builder, platform: 'linux-amd64' });

async function verdict(id: string): Promise<unknown> {
  const [row] = await db.query<{ verdict: unknown }>('select verdict from build where id = $1', [id]);
  return row?.verdict;
}

describe('asking for a build', () => {
  it('adopts what is open, whoever asks at the same moment', async () => {
    const name = await freshModule(db);
    const asked = await Promise.all(
      Array.from({ length: 8 }, () => openBuild(db, { module: name, commit: A, closure: closureOf(A), platform: 'linux-amd64', askedBy: null })),
    );
    expect(new Set(asked.filter((id) => id !== null)).size).toBe(1);
    expect(await requestBuild(db, name, A)).toBe(asked.find((id) => id !== null));
  });

  it('is refused when head or closure moved, or the closure has its verdict', async () => {
    const name = await freshModule(db);
    const ask = (commit: string, closure: string) => openBuild(db, { module: name, commit, closure, platform: 'linux-amd64', askedBy: null });
    expect(await ask(B, closureOf(B))).toBeNull();
    expect(await ask(A, closureOf(B))).toBeNull();
    await recordAnswer(db, failed(await requestBuild(db, name, A)), tick(), times);
    expect(await ask(A, closureOf(A))).toBeNull();
    expect(await openInspection(db, name, A)).toBeNull();
  });

  it('publishes with the attempt, once, and not while it is taken', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    expect(await beginPublish(db, id, tick())).toEqual({
      kind: 'publish',
      routingKey: 'build.linux-amd64',
      attempt: 1,
      body: {
        v: 1,
        kind: 'build',
        request: id,
        attempt: 1,
        mesh: 'home',
        module: name,
        repository: `file:///${name}.git`,
        ref: 'main',
        commit: A,
        platform: 'linux-amd64',
        closure: closureOf(A),
        inputs: [],
      },
    });
    await recordPublishFailure(db, id, 'the broker is away', tick());
    expect((await facts(db, name)).requests[0]?.trouble).toMatchObject({ reason: 'the broker is away' });
    await markPublished(db, id, 1);
    expect((await facts(db, name)).requests[0]).toMatchObject({ state: 'published', trouble: null });
    expect(await beginPublish(db, id, tick())).toEqual({ kind: 'running' });
    await recordAnswer(db, fitAnswer(id), tick(), times);
    expect(await beginPublish(db, id, tick())).toEqual({ kind: 'done', outcome: 'fit' });
    expect(await beginPublish(db, 'unknown', tick())).toEqual({ kind: 'done', outcome: 'gone' });
  });
});

describe('a claim', () => {
  it('is given to exactly one of twenty, and to that one again', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => claimRequest(db, claimOf(id, `builder-${i}`), tick())));
    const winners = replies.flatMap((reply, i) => (reply.answer === 'go' ? [`builder-${i}`] : []));
    expect(winners).toHaveLength(1);
    const [winner = ''] = winners;
    expect(replies.filter((reply) => reply.answer === 'drop').every((reply) => reply.reason === `taken by ${winner}`)).toBe(true);
    expect(await claimRequest(db, claimOf(id, winner), tick())).toMatchObject({ answer: 'go' });
  });

  it('is dropped with the reason: cancelled, told to stop, answered, another attempt, unknown', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    expect(await claimRequest(db, claimOf(id, 'b', 2), tick())).toMatchObject({ answer: 'drop', reason: 'attempt 2 is over: it is at attempt 1' });
    await takeBuild(db, id);
    await cancelRequests(db, [id], 'superseded by a newer commit');
    expect(await claimRequest(db, claimOf(id, 'builder-1'), tick())).toMatchObject({ answer: 'drop', reason: 'superseded by a newer commit' });
    expect((await facts(db, name)).requests).toMatchObject([{ id, isStopping: true }]);
    const other = await requestBuild(db, name, A);
    expect(other).not.toBe(id);
    await recordAnswer(db, fitAnswer(other), tick(), times);
    expect(await claimRequest(db, claimOf(other, 'b'), tick())).toMatchObject({ answer: 'drop', reason: 'it has been answered' });
    expect(await claimRequest(db, claimOf('unknown', 'b'), tick())).toMatchObject({ answer: 'drop', reason: 'there is no such request' });
  });
});

describe('one verdict per build', () => {
  it('is the first of fit and failed, whatever is answered twice, late or out of order', async () => {
    const answers = {
      fit: (id: string, attempt: number) => fitAnswer(id, { attempt }),
      failed: (id: string, attempt: number) => failed(id, { attempt }),
      environment,
    };
    const drawing = fc.array(
      fc.record({ outcome: fc.constantFrom('fit' as const, 'failed' as const, 'environment' as const), attempt: fc.integer({ min: 1, max: 3 }) }),
      {
        minLength: 1,
        maxLength: 6,
      },
    );
    await fc.assert(
      fc.asyncProperty(drawing, async (drawn) => {
        const name = await freshModule(db);
        const id = await requestBuild(db, name, A);
        const seen = new Set<number>();
        let expected: string | null = null;
        for (const { outcome, attempt } of drawn) {
          const answer = answers[outcome](id, attempt);
          const recorded = await recordAnswer(db, answer, tick(), times);
          expect(recorded.first).toBe(!seen.has(attempt));
          if (!seen.has(attempt) && outcome !== 'environment') expected ??= outcome;
          seen.add(attempt);
          expect(await verdict(id)).toBe(expected);
          expect(recorded.final).toBe(expected !== null);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('holds when two answers arrive in the same moment', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    const recorded = await Promise.all([
      recordAnswer(db, fitAnswer(id), tick(), times),
      recordAnswer(db, fitAnswer(id), tick(), times),
      recordAnswer(db, failed(id, { attempt: 2 }), tick(), times),
    ]);
    expect(recorded.filter((one) => one.first)).toHaveLength(2);
    expect(recorded.every((one) => one.final && one.outcome === recorded[0]?.outcome)).toBe(true);
  });

  it('keeps every try of a closure: the newest answered one counts, the first fit one made its artifacts', async () => {
    const name = await freshModule(db);
    const first = await requestBuild(db, name, A);
    await recordAnswer(db, fitAnswer(first), tick(), times);
    const again = async (answer: (id: string) => Answer): Promise<string> => {
      await recordIntent(db, {
        id: `again-${name}-${tick().getTime()}`,
        verb: 'rebuild',
        module: name,
        node: null,
        buildId: null,
        who: 'ada',
        why: 'to see',
      });
      const { again: asked, headBuild } = await facts(db, name);
      expect(asked).toMatchObject({ by: 'ada' });
      const id = await requestBuild(db, name, A);
      expect(await facts(db, name)).toMatchObject({ again: null, headBuild });
      await recordAnswer(db, answer(id), tick(), times);
      return id;
    };
    const second = await again((id) => failed(id));
    expect(await facts(db, name)).toMatchObject({ headBuild: { id: second, verdict: 'failed', tryNumber: 2 }, effective: { id: first } });
    const third = await again((id) => fitAnswer(id));
    expect(await facts(db, name)).toMatchObject({ headBuild: { id: third, verdict: 'fit', tryNumber: 3 }, effective: { id: first } });
    const detail = await moduleDetail(db, name);
    expect(detail?.builds.map((one) => [one.build, one.try, one.verdict, one.isEffective, one.notReproducible])).toEqual([
      [third, 3, 'fit', false, true],
      [second, 2, 'failed', false, false],
      [first, 1, 'fit', true, false],
    ]);
  });
});

describe('a build that is to be checked', () => {
  const checking = (module: string, id: string) =>
    recordIntent(db, { id, verb: 'rebuild', module, node: null, buildId: null, check: true, who: 'ada', why: 'to see' });
  const isCheck = async (id: string): Promise<unknown> =>
    (await db.query<{ check: unknown }>(`select body -> 'check' as check from request where id = $1`, [id]))[0]?.check ?? null;

  it('says so in its request, once, and keeps what differs', async () => {
    const name = await freshModule(db);
    await recordAnswer(db, fitAnswer(await requestBuild(db, name, A)), tick(), times);
    expect(await checking(name, `${name}-check`)).toBe(`${A.slice(0, 7)} is to be built twice`);
    const id = await requestBuild(db, name, A);
    expect(await isCheck(id)).toBe(true);
    const differing = [{ artifact: 'app', file: 'time' }];
    await recordAnswer(db, { ...fitAnswer(id), check: { differing } } as Answer, tick(), times);
    expect((await moduleDetail(db, name))?.builds[0]).toMatchObject({ build: id, isCheck: true, differing });
    await recordIntent(db, { id: `${name}-again`, verb: 'rebuild', module: name, node: null, buildId: null, who: 'ada', why: 'to see' });
    expect(await isCheck(await requestBuild(db, name, A))).toBeNull();
  });

  it('comes after one that is under way, and is not asked for twice', async () => {
    const name = await freshModule(db);
    const first = await requestBuild(db, name, A);
    expect(await checking(name, `${name}-1`)).toBe(`${A.slice(0, 7)} is to be built twice, once the build that is under way has ended`);
    expect(await requestBuild(db, name, A)).toBe(first);
    await recordAnswer(db, fitAnswer(first), tick(), times);
    const second = await requestBuild(db, name, A);
    expect(await isCheck(second)).toBe(true);
    expect(await checking(name, `${name}-2`)).toBe(`a build of ${A.slice(0, 7)} is under way`);
  });
});

describe('an environmental answer', () => {
  it('is no verdict: it keeps the since of the first, and is tried again with capped backoff', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    const began = tick();
    const delays: number[] = [];
    for (let attempt = 1; attempt <= 9; attempt += 1) {
      const recorded = await recordAnswer(db, environment(id, attempt), attempt === 1 ? began : tick(), times);
      expect(recorded).toMatchObject({ first: true, final: false, outcome: 'environment' });
      delays.push((recorded.retry?.delayMs ?? 0) / 1_000);
    }
    expect(delays).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600]);
    const now = tick();
    const found = await facts(db, name, now);
    expect(found).toMatchObject({
      headBuild: null,
      requests: [
        {
          attempt: 10,
          state: 'requested',
          lostAttempts: 9,
          isSuspect: false,
          trouble: { reason: 'fetch: disk is full', since: began.toISOString() },
        },
      ],
    });
    expect(compare(found, times).verdict).toBe('outstanding');
    expect(await beginPublish(db, id, now)).toMatchObject({ kind: 'later', reason: 'fetch: disk is full' });
    expect(await beginPublish(db, id, new Date(now.getTime() + 600_000))).toMatchObject({ kind: 'publish', attempt: 10 });
  });

  it('makes suspect after three in a row while builders end other work, tried hourly', async () => {
    const [name, other] = [await freshModule(db), await freshModule(db)];
    const id = await requestBuild(db, name, A);
    for (const attempt of [1, 2]) await recordAnswer(db, environment(id, attempt), tick(), times);
    await recordAnswer(db, fitAnswer(await requestBuild(db, other, A)), tick(), times);
    expect((await recordAnswer(db, environment(id, 3), tick(), times)).retry?.delayMs).toBe(times.stuckAfter);
    expect((await facts(db, name)).requests).toMatchObject([{ isSuspect: true }]);
  });

  it('of an attempt that is over changes nothing, and a late fit of it still ends the build', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await takeBuild(db, id);
    await recordAnswer(db, environment(id, 1), tick(), times);
    await takeBuild(db, id, 2, 'builder-2');
    expect(await recordAnswer(db, environment(id, 1, 'again'), tick(), times)).toMatchObject({ first: false, final: false });
    expect((await facts(db, name)).requests).toMatchObject([{ attempt: 2, state: 'taken', takenBy: 'builder-2', trouble: null }]);
    expect(await recordAnswer(db, fitAnswer(id, { attempt: 3 }), tick(), times)).toMatchObject({ final: true, outcome: 'fit' });
  });
});

describe('what nobody tells us about', () => {
  it('is a builder that went silent: tried again, never failed', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    const taken = tick();
    await takeBuild(db, id, 1, 'builder-9', taken);
    await beatRequests(db, [beatOf('builder-9', [{ request: id, attempt: 1, step: 'run', since: taken.toISOString() }])], taken);
    const mine = <T extends { module: string }>(rows: readonly T[]): T[] => rows.filter((row) => row.module === name);
    expect(mine((await overdueRequests(db, new Date(taken.getTime() + 59_000), times)).lost)).toEqual([]);
    const lost = mine((await overdueRequests(db, new Date(taken.getTime() + 61_000), times)).lost);
    expect(lost).toEqual([
      { module: name, request: id, reason: expect.stringMatching(/^builder-9 was lost: no beat since \d{4}-\d\d-\d\dT\d\d:\d\dZ$/), delayMs: 5_000 },
    ]);
    expect(await facts(db, name)).toMatchObject({ headBuild: null, requests: [{ attempt: 2, state: 'requested' }] });
    expect(mine((await overdueRequests(db, new Date(taken.getTime() + 62_000), times)).lost)).toEqual([]);
    expect(mine((await overdueRequests(db, new Date(taken.getTime() + 97_000), times)).unpublished)).toMatchObject([{ request: id }]);
  });

  it('is a message that was lost: published again while an idle builder beats', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await markPublished(db, id, 1);
    const [row] = await db.query<{ at: Date }>('select published_at as at from request where id = $1', [id]);
    const later = new Date((row?.at.getTime() ?? 0) + times.unclaimed + 1_000);
    const mine = async () => (await overdueRequests(db, later, times)).unclaimed.filter((one) => one.module === name);
    expect(await mine()).toEqual([]);
    await beatRequests(db, [beatOf('idle')], later);
    expect(await mine()).toMatchObject([{ request: id, attempt: 1, routingKey: 'build.linux-amd64', body: { request: id, attempt: 1 } }]);
    expect(await mine()).toEqual([]);
  });

  it('is an activity that was not completed, until it is marked', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await recordAnswer(db, failed(id), tick(), times);
    const mine = async () => (await overdueRequests(db, tick(), times)).ended.filter((one) => one.request === id);
    expect(await mine()).toEqual([{ module: name, request: id, outcome: 'failed' }]);
    await markCompleted(db, [id]);
    expect(await mine()).toEqual([]);
  });
});

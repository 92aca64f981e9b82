import { connect } from 'amqplib';
import { type Control, startControl } from '../../src/control';
import { recordAnswer } from '../../src/inventory/answers';
import { beginPublish, cancelRequests, markPublished } from '../../src/inventory/requests';
import { EXCHANGES, ensureBuilderAccount, type Link, openLink, QUEUES, ROUTES } from '../../src/link';
import type { Answer, Claim } from '../../src/schema/messages';
import { buildOf, type ControlWorld, controlWorld, HEAD, inspectionOf, moduleAt } from '../support/control';
import { eventually } from '../support/eventually';

let world: ControlWorld;
let control: Control;
let builder: Link;

beforeAll(async () => {
  world = await controlWorld();
  control = await start();
  world.atEnd(() => control.stop());
  const { user, password } = await ensureBuilderAccount(world.management, 'builder-1');
  const url = new URL(world.broker.amqpUrl);
  Object.assign(url, { username: encodeURIComponent(user), password });
  builder = await openLink({ url: url.href, name: 'builder-1' });
  world.atEnd(() => builder.close());
  await builder.ready(10_000);
});

afterAll(() => world.close());

async function start(): Promise<Control> {
  return await startControl(world.deps, { ensureTemporal: async () => undefined, runningModules: async () => new Set(), connections: () => 0 });
}

const times = { startedAt: '2026-11-29T14:00:00.000Z', endedAt: '2026-11-29T14:00:01.000Z' };

function inspected(request: string, attempt = 1): Answer {
  return { v: 1, request, attempt, builder: 'builder-1', ...times, kind: 'inspect', outcome: 'valid', manifest: { module: 'kiosk' }, notes: [] };
}

function built(request: string, outcome: 'fit' | 'failed', attempt = 1): Answer {
  const base = { v: 1, request, attempt, builder: 'builder-1', ...times, kind: 'build', log: null, steps: {} } as const;
  return outcome === 'fit'
    ? { ...base, outcome, inputs: [], artifacts: [], provenance: null }
    : { ...base, outcome, inputs: [], step: 'test', reason: '1 of 14 tests' };
}

function environmental(request: string, attempt = 1): Answer {
  return {
    v: 1,
    request,
    attempt,
    builder: 'builder-1',
    ...times,
    kind: 'build',
    outcome: 'environment',
    step: 'fetch',
    reason: 'no network',
    log: null,
    steps: {},
  };
}

async function say(answer: object): Promise<void> {
  await builder.publish(EXCHANGES.builders, ROUTES.answer, answer);
}

async function claim(request: string, by = 'builder-1', attempt = 1): Promise<unknown> {
  const body: Claim = { v: 1, request, attempt, builder: by, platform: 'linux-amd64' };
  return await builder.request(EXCHANGES.builders, ROUTES.claim, body, { timeoutMs: 5_000 });
}

/** A module whose head is inspected, and an open, published build of it. */
async function published(module: string): Promise<string> {
  await moduleAt(world, module);
  await recordAnswer(world.db, inspected(await inspectionOf(world, module)), world.deps.now(), world.deps.times);
  const request = await buildOf(world, module);
  await beginPublish(world.db, request, world.deps.now());
  await markPublished(world.db, request, 1);
  return request;
}

/** Apart from what the request pass says of one that it met between its row and its publication: this clock runs ahead. */
function completions(request: string): unknown[] {
  return world.temporal.completed
    .filter((one) => one.request === request)
    .map((one) => one.completion)
    .filter((completion) => !(completion.kind === 'retry' && completion.reason === 'it was not published'));
}

async function queueIsEmpty(queue: string): Promise<boolean> {
  return (await world.link.withChannel((channel) => channel.checkQueue(queue))).messageCount === 0;
}

describe('an answer', () => {
  it('becomes a fact, and then its activity is completed', async () => {
    await moduleAt(world, 'inspected');
    const request = await inspectionOf(world, 'inspected');
    await say(inspected(request));
    await eventually(() => completions(request).length > 0);
    expect(completions(request)[0]).toEqual({ kind: 'done', summary: 'valid' });
    expect(await world.row('select outcome from inspection where module = $1', ['inspected'])).toEqual({ outcome: 'valid' });
    await eventually(async () => (await world.count('request where id = $1 and completed_at is not null', [request])) === 1);
  });

  it('that comes twice is one verdict', async () => {
    const request = await published('twice');
    await say(built(request, 'fit'));
    await say(built(request, 'fit'));
    // The request pass may complete it once more: it is the same answer however often it is said.
    await eventually(() => completions(request).length >= 2);
    for (const completion of completions(request)) expect(completion).toEqual({ kind: 'done', summary: 'fit' });
    expect(await world.count('answer where request_id = $1', [request])).toBe(1);
  });

  it('that contradicts the first does not change the verdict', async () => {
    const request = await published('contradicted');
    await say(built(request, 'fit'));
    // Answers are taken side by side: which of two is the first is certain only once one of them stands.
    await eventually(async () => (await world.count('answer where request_id = $1', [request])) === 1);
    await say(built(request, 'failed', 2));
    await eventually(() => completions(request).length >= 2);
    expect(await world.row('select verdict, reason from build where id = $1', [request])).toEqual({ verdict: 'fit', reason: null });
  });

  it('that is environmental is no verdict: it is tried again later, as another attempt', async () => {
    const request = await published('environmental');
    await claim(request);
    await say(environmental(request));
    await eventually(() => completions(request).length > 0);
    expect(completions(request)).toEqual([{ kind: 'retry', reason: 'fetch: no network', delayMs: 5_000 }]);
    expect(await world.row('select state, attempt, lost_attempts from request where id = $1', [request])).toEqual({
      state: 'requested',
      attempt: 2,
      lost_attempts: 1,
    });
    expect(await world.row('select verdict from build where id = $1', [request])).toEqual({ verdict: null });
  });

  it('that comes late, when its attempt was given up, still counts', async () => {
    const request = await published('late');
    await claim(request);
    await say(environmental(request));
    await eventually(() => completions(request).length >= 1);
    await say(built(request, 'fit'));
    // The same attempt has answered: only another attempt's answer can end it.
    await say(built(request, 'failed', 2));
    await eventually(
      async () => (await world.row<{ verdict: string | null }>('select verdict from build where id = $1', [request])).verdict !== null,
    );
    expect(await world.row('select verdict from build where id = $1', [request])).toEqual({ verdict: 'failed' });
  });

  it('whose taker was killed between storing and acknowledging is taken in once, and its activity completed', async () => {
    await control.stop();
    const request = await published('killed');
    await say(built(request, 'fit'));
    const victim = await connect(world.broker.amqpUrl, { timeout: 5_000 });
    victim.on('error', () => undefined);
    const channel = await victim.createChannel();
    const message = await eventually(() => channel.get(QUEUES.answers, { noAck: false }));
    await recordAnswer(world.db, JSON.parse(message.content.toString()) as Answer, world.deps.now(), world.deps.times);
    await victim.close();
    control = await start();
    await eventually(() => completions(request).length > 0);
    expect(completions(request)[0]).toEqual({ kind: 'done', summary: 'fit' });
    expect(await world.count('answer where request_id = $1', [request])).toBe(1);
    await eventually(() => queueIsEmpty(QUEUES.answers));
  });

  it('is a fact also while Temporal is away, and the request pass completes the activity afterwards', async () => {
    const request = await published('away');
    world.temporal.failure = new Error('Temporal is away');
    await say(built(request, 'fit'));
    await eventually(async () => (await world.count('build where id = $1 and verdict = $2', [request, 'fit'])) === 1);
    expect(completions(request)).toEqual([]);
    world.temporal.failure = null;
    await eventually(() => completions(request).length > 0);
    await eventually(async () => (await world.count('request where id = $1 and completed_at is not null', [request])) === 1);
  });
});

describe('a claim', () => {
  it('is granted to one builder, and to the same one again', async () => {
    const request = await published('claimed');
    expect(await claim(request)).toMatchObject({ answer: 'go' });
    expect(await claim(request)).toMatchObject({ answer: 'go' });
    expect(await claim(request, 'builder-2')).toEqual({ v: 1, answer: 'drop', reason: 'taken by builder-1' });
  });

  it('is dropped once the request was cancelled', async () => {
    const request = await published('cancelled');
    await claim(request);
    await cancelRequests(world.db, [request], 'superseded by 4f2c1a9');
    expect(await claim(request)).toEqual({ v: 1, answer: 'drop', reason: 'superseded by 4f2c1a9' });
  });
});

describe('a builder', () => {
  const beat = (over: object = {}): object => ({
    v: 1,
    builder: 'builder-1',
    platforms: ['linux-amd64'],
    at: '2026-11-29T14:00:00.000Z',
    publicKey: 'k',
    version: '1',
    busy: [],
    ...over,
  });

  it('that is lost leaves its build outstanding: tried again, counted, with the reason', async () => {
    const request = await published('lost');
    await claim(request);
    world.advance(61_000);
    await eventually(() => completions(request).length > 0);
    expect(completions(request)[0]).toMatchObject({
      kind: 'retry',
      delayMs: 5_000,
      reason: expect.stringMatching(/^builder-1 was lost: no beat since /),
    });
    expect(await world.row('select state, attempt, lost_attempts from request where id = $1', [request])).toEqual({
      state: 'requested',
      attempt: 2,
      lost_attempts: 1,
    });
    expect(await world.row('select verdict from build where id = $1', [request])).toEqual({ verdict: null });
  });

  it('that beats keeps what it is at', async () => {
    const request = await published('kept');
    await claim(request);
    world.advance(45_000);
    const busy = [{ request, attempt: 1, step: 'test', since: '2026-11-29T14:00:00.000Z' }];
    await builder.publish(EXCHANGES.builders, ROUTES.builderBeat, beat({ busy }), { persistent: false });
    await eventually(async () => (await world.count('request where id = $1 and step = $2', [request, 'test'])) === 1);
    world.advance(45_000);
    expect(await claim(request)).toMatchObject({ answer: 'go' });
    expect(completions(request)).toEqual([]);
  });

  it('of a platform that nobody had yet brings its queue', async () => {
    await expect(world.link.publish(EXCHANGES.requests, 'build.plan9-mips', {})).rejects.toThrow(/came back/);
    await builder.publish(EXCHANGES.builders, ROUTES.builderBeat, beat({ builder: 'odd', platforms: ['plan9-mips'] }), { persistent: false });
    await eventually(() => queueIsEmpty('build.plan9-mips'));
  });

  it('that never claims though it beats is asked again', async () => {
    const request = await published('unclaimed');
    world.advance(5 * 60_000 + 1_000);
    await builder.publish(EXCHANGES.builders, ROUTES.builderBeat, beat(), { persistent: false });
    const asked: string[] = [];
    const reading = await builder.consume('build.linux-amd64', { prefetch: 10 }, async (delivery) => {
      asked.push((JSON.parse(delivery.body.toString()) as { request: string }).request);
      delivery.ack();
    });
    await eventually(() => asked.includes(request));
    await reading.stop();
  });
});

describe('a message that nobody can read', () => {
  it.each<[string, string, object, RegExp]>([
    ['answers', ROUTES.answer, { v: 1, nonsense: true }, /has not the form/],
    ['answers', ROUTES.answer, inspected('no-such-request'), /there is no request no-such-request/],
    ['claims', ROUTES.claim, { v: 2 }, /has not the form/],
    ['builder-beats', ROUTES.builderBeat, [], /has not the form/],
    ['logs', ROUTES.log, { v: 1, request: 'x', attempt: 1, from: -1, lines: [] }, /has not the form/],
  ])('in %s is a dead letter with its reason', async (queue, route, body, reason) => {
    await builder.publish(EXCHANGES.builders, route, body);
    const letter = await eventually(async () => {
      const [row] = await world.db.query<{ reason: string; body: string }>('select reason, body from dead_letter where queue = $1 and body = $2', [
        queue,
        JSON.stringify(body),
      ]);
      return row ?? null;
    });
    expect(letter.reason).toMatch(reason);
  });
});

describe('log lines', () => {
  it('are kept while their request runs', async () => {
    const request = await published('logged');
    await claim(request);
    await builder.publish(EXCHANGES.builders, ROUTES.log, { v: 1, request, attempt: 1, from: 0, lines: ['one', 'two'] }, { persistent: false });
    await eventually(async () => (await world.count('log_line where request_id = $1', [request])) === 2);
    expect(await world.row('select commit from request where id = $1', [request])).toEqual({ commit: HEAD });
  });
});

import { changeOf } from '../../src/api/events';
import { type StatusAnswer, statusAnswer, statusChange } from '../../src/schema/api';
import { startApi, type TestApi } from '../support/api';
import { eventually } from '../support/eventually';
import { aDay, COMMITS, inStep, situate } from '../support/meshes';

let api: TestApi;

beforeAll(async () => {
  api = await startApi();
});

beforeEach(async () => {
  await api.reset();
});

afterEach(async () => {
  const ended = [...open];
  for (const stream of ended) stream.stop();
  await Promise.all(ended.map((stream) => stream.ended));
  open.clear();
});

afterAll(async () => {
  await api.close();
});

const WITHIN = { timeoutMs: 20_000 };
const open = new Set<Stream>();

interface Stream {
  readonly events: Array<{ event: string; data: unknown }>;
  readonly ended: Promise<void>;
  stop(): void;
}

async function listen({ url, token } = api): Promise<Stream> {
  const ending = new AbortController();
  const response = await fetch(`${url}/api/v1/events`, { headers: { cookie: `tally_token=${token}` }, signal: ending.signal });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const events: Stream['events'] = [];
  const read = async (): Promise<void> => {
    let waiting = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      waiting += decoder.decode(chunk, { stream: true });
      const whole = waiting.split('\n\n');
      waiting = whole.pop() ?? '';
      for (const message of whole) {
        const [, event, data] = /^event: (\w+)\ndata: (.*)$/s.exec(message) ?? [];
        if (event !== undefined && data !== undefined) events.push({ event, data: JSON.parse(data) });
      }
    }
  };
  const ended = read().catch((error: unknown) => {
    if (!ending.signal.aborted) throw error;
  });
  const stream = { events, ended, stop: () => ending.abort() };
  open.add(stream);
  return stream;
}

describe('a board that listens', () => {
  test('is given the whole status, and then the rows that changed and no others', async () => {
    await aDay(api.db);
    const stream = await listen();
    await eventually(() => expect(stream.events.length).toBeGreaterThan(0), WITHIN);
    expect(stream.events[0]?.event).toBe('status');
    expect(statusAnswer.parse(stream.events[0]?.data).modules).toHaveLength(6);
    await inStep(api.db, 'kiosk');
    const change = await eventually(() => {
      const last = stream.events.at(-1);
      expect(last?.event).toBe('change');
      return statusChange.parse(last?.data);
    }, WITHIN);
    expect(change.modules.map((row) => [row.module, row.urgency])).toEqual([['kiosk', 'in step']]);
    await api.db.query(`delete from module where name = 'site'`);
    await eventually(
      () => expect(stream.events.some(({ data }) => statusChange.safeParse(data).data?.removedModules.includes('site'))).toBe(true),
      WITHIN,
    );
  });

  test('needs a token', async () => {
    expect((await fetch(`${api.url}/api/v1/events`)).status).toBe(401);
  });

  test('shares one reading of the store with all others, and there is a limit to them', async () => {
    await inStep(api.db, 'core');
    const streams = await Promise.all(Array.from({ length: 100 }, () => listen()));
    await eventually(() => expect(streams.every((stream) => stream.events.length > 0)).toBe(true), WITHIN);
    const one = await api.call('GET', '/api/v1/events');
    expect(one).toMatchObject({ status: 503, body: { error: expect.stringContaining('100 boards') } });
    await situate(api.db, { module: 'core', head: COMMITS.moving, situation: 'settling', line: 'source 4f2c1a9 · not inspected yet', reason: 'x' });
    const isTold = (stream: Stream): boolean =>
      stream.events.some(({ data }) => statusChange.safeParse(data).data?.modules.some((row) => row.situation === 'settling') ?? false);
    await eventually(() => expect(streams.every(isTold)).toBe(true), WITHIN);
  });

  test('does not keep the control plane from ending', async () => {
    const other = await startApi();
    const stream = await listen(other);
    await eventually(() => expect(stream.events.length).toBeGreaterThan(0), WITHIN);
    await other.close();
    await stream.ended;
  });
});

test('that a beat came is no change', async () => {
  await aDay(api.db);
  const before = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body) as StatusAnswer;
  await api.db.query(`update node set last_beat_at = now() where name = 'alpha'`);
  const now = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body) as StatusAnswer;
  expect(changeOf(before, now)).toBeNull();
});

import { changeOf } from '../../src/api/events';
import { type StatusAnswer, statusAnswer, statusChange } from '../../src/schema/api';
import { startApi, type TestApi } from '../support/api';
import { eventually } from '../support/eventually';
import { aDay, COMMITS, inStep, situate } from '../support/meshes';

let api: TestApi;

beforeEach(async () => {
  api = await startApi();
});

afterEach(async () => {
  await api.close();
});

interface Stream {
  readonly events: Array<{ event: string; data: unknown }>;
  readonly ended: Promise<void>;
  stop(): void;
}

async function listen(): Promise<Stream> {
  const ending = new AbortController();
  const response = await fetch(`${api.url}/api/v1/events`, { headers: { cookie: `tally_token=${api.token}` }, signal: ending.signal });
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
  return { events, ended, stop: () => ending.abort() };
}

describe('a board that listens', () => {
  test('is given the whole status, and then the rows that changed and no others', async () => {
    await aDay(api.db);
    const stream = await listen();
    await eventually(() => expect(stream.events).toHaveLength(1));
    expect(stream.events[0]?.event).toBe('status');
    expect(statusAnswer.parse(stream.events[0]?.data).modules).toHaveLength(6);
    await inStep(api.db, 'kiosk');
    await eventually(() => expect(stream.events.length).toBeGreaterThan(1));
    expect(stream.events[1]?.event).toBe('change');
    expect(statusChange.parse(stream.events[1]?.data).modules.map((row) => [row.module, row.urgency])).toEqual([['kiosk', 'in step']]);
    await api.db.query(`delete from module where name = 'site'`);
    await eventually(() => expect(stream.events.some(({ data }) => statusChange.safeParse(data).data?.removedModules.includes('site'))).toBe(true));
    stream.stop();
    await stream.ended;
  });

  test('needs a token', async () => {
    expect((await fetch(`${api.url}/api/v1/events`)).status).toBe(401);
  });

  test('shares one reading of the store with all others, and there is a limit to them', async () => {
    await inStep(api.db, 'core');
    const streams = await Promise.all(Array.from({ length: 100 }, listen));
    await eventually(() => expect(streams.every((stream) => stream.events.length === 1)).toBe(true));
    const one = await api.call('GET', '/api/v1/events');
    expect(one).toMatchObject({ status: 503, body: { error: expect.stringContaining('100 boards') } });
    await situate(api.db, { module: 'core', head: COMMITS.moving, situation: 'settling', line: 'source 4f2c1a9 · not inspected yet', reason: 'x' });
    await eventually(() => expect(streams.every((stream) => stream.events.length > 1)).toBe(true));
    for (const stream of streams) stream.stop();
    await Promise.all(streams.map((stream) => stream.ended));
  });

  test('does not keep the control plane from ending', async () => {
    const stream = await listen();
    await eventually(() => expect(stream.events).toHaveLength(1));
    await api.close();
    await stream.ended;
    api = await startApi();
  });
});

test('that a beat came is no change', async () => {
  await aDay(api.db);
  const before = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body) as StatusAnswer;
  await api.db.query(`update node set last_beat_at = now() where name = 'alpha'`);
  const now = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body) as StatusAnswer;
  expect(changeOf(before, now)).toBeNull();
});

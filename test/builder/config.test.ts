import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openJournal, readBuilderConfig } from '../../src/builder';
import { commandEnvironment } from '../../src/builder/environment';
import { reasonLine, sizeWords, statusWords, timeWords } from '../../src/builder/reason';
import type { Answer } from '../../src/schema/messages';
import { removeScratch, scratch } from './scratch';

afterAll(removeScratch);

const least = { AMQP_URL: 'amqp://builder:a-secret@broker/', REGISTRY_URL: 'http://registry:5000' };

describe('what a builder is told', () => {
  test('is its broker and its registry; the rest has a default', () => {
    expect(readBuilderConfig({ ...least, TALLY_BUILDER_NAME: '' })).toMatchObject({
      name: expect.stringMatching(/^[a-z0-9][a-z0-9-]*$/),
      platforms: [expect.stringMatching(/^linux-[a-z0-9]+$/)],
      beatMs: 10_000,
      limits: { fetchMs: 600_000, minDiskBytes: 1024 ** 3 },
    });
    expect(
      readBuilderConfig({ ...least, TALLY_PLATFORMS: 'linux-amd64,linux-arm64', TALLY_BUILDER_CACHE: '2G', TALLY_TIMES_BUILDER_BEAT: '500' }),
    ).toMatchObject({
      platforms: ['linux-amd64', 'linux-arm64'],
      beatMs: 500,
      limits: { cacheBytes: 2 * 1024 ** 3 },
    });
  });

  test.each<[Record<string, string>, RegExp]>([
    [{ AMQP_URL: '' }, /^the builder cannot start: AMQP_URL is not set$/],
    [{ AMQP_URL: 'http://a-secret@broker' }, /^the builder cannot start: AMQP_URL is wrong/],
    [{ TALLY_BUILDER_FETCH_TIMEOUT: '10 minutes' }, /^the builder cannot start: TALLY_BUILDER_FETCH_TIMEOUT is wrong: .*as in 10m$/],
    [{ TALLY_BUILDER_NAME: 'My Builder' }, /^the builder cannot start: TALLY_BUILDER_NAME is wrong: a name is lower-case/],
  ])('is refused by name, and without its value, where it is wrong: %j', (wrong, message) => {
    expect(() => readBuilderConfig({ ...least, ...wrong })).toThrow(message);
    expect(() => readBuilderConfig({ ...least, ...wrong })).not.toThrow(/a-secret/);
  });
});

describe('the environment of a command', () => {
  const builder = {
    ...{ PATH: '/work/node_modules/.bin:.:/opt/tools:/usr/bin', AMQP_URL: least.AMQP_URL, HOME: '/root', GITHUB_TOKEN: 'a-secret' },
    ...{ GOPROXY: 'https://goproxy.example', HTTPS_PROXY: 'http://user:a-secret@proxy:3128' },
  };

  test('has the tools of the builder and the routes to package indexes, and no password', () => {
    const fetch = commandEnvironment(builder, { GREETING: 'hello' }, {}, { step: 'fetch', hasNetwork: true });
    expect(fetch).toMatchObject({ GOPROXY: 'https://goproxy.example', GREETING: 'hello', HOME: '/tmp/home', LANG: 'C.UTF-8', TZ: 'UTC' });
    expect(fetch.PATH).toBe('/opt/tools:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin');
    expect(JSON.stringify(fetch)).not.toContain('a-secret');
    expect(commandEnvironment(builder, {}, {}, { step: 'run', hasNetwork: true })).not.toHaveProperty('GOPROXY');
  });

  test('tells tools of no network where there is none, and of what was laid after what the module names itself', () => {
    const env = commandEnvironment(builder, { PYTHONPATH: 'lib' }, { PYTHONPATH: '/tmp/inputs/python' }, { step: 'run', hasNetwork: false });
    expect(env).toMatchObject({ GOPROXY: 'off', CARGO_NET_OFFLINE: 'true', PYTHONPATH: 'lib:/tmp/inputs/python' });
  });
});

describe('a reason', () => {
  test('is one line without a password', () => {
    expect(reasonLine('fetch of https://ada:a-secret@git.example/m.git:\n  403')).toBe('fetch of https://git.example/m.git: 403');
    expect([timeWords(1_500), timeWords(600_000), timeWords(7_200_000)]).toEqual(['2 s', '10 min', '2 h']);
    expect([sizeWords(512 << 20), sizeWords(3 * 1024 ** 3)]).toEqual(['512 MiB', '3 GiB']);
    expect([statusWords(1), statusWords(137)]).toEqual(['exit status 1', 'exit status 137 (SIGKILL)']);
  });
});

describe('the journal', () => {
  const answer = (request: string, attempt = 1, outcome: 'environment' | 'failed' = 'failed'): Answer => ({
    ...{
      v: 1,
      kind: 'build',
      request,
      attempt,
      builder: 'builder-1',
      startedAt: '2026-11-29T14:00:00Z',
      endedAt: '2026-11-29T14:01:00Z',
      log: null,
      steps: {},
    },
    ...(outcome === 'failed' ? { outcome, step: 'test', reason: 'exit status 1', inputs: [] } : { outcome, step: 'fetch', reason: 'no route' }),
  });

  test('survives a restart and a line that was cut off, and is bounded', async () => {
    const directory = join(scratch(), 'journal');
    mkdirSync(directory);
    const first = await openJournal(directory);
    for (let i = 0; i < 1_200; i++) await first.append(answer(`r-${i}`));
    const path = join(directory, 'journal.jsonl');
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"v":1,"kind":"bui`);
    const again = await openJournal(directory);
    expect(again.find('r-1199', 1)).toEqual(answer('r-1199'));
    expect(again.find('r-0', 1)).toBeNull();
    await again.append(answer('r-1200'));
    expect((await openJournal(directory)).find('r-1200', 1)).toEqual(answer('r-1200'));
    expect(readFileSync(path, 'utf8').trim().split('\n').length).toBeLessThanOrEqual(1_000);
  });

  test('gives a verdict for later attempts, and never what was only environmental', async () => {
    const journal = await openJournal(scratch());
    await journal.append(answer('r', 1, 'environment'));
    expect(journal.find('r', 1)).toMatchObject({ outcome: 'environment' });
    expect(journal.find('r', 2)).toBeNull();
    await journal.append(answer('r', 2));
    expect(journal.find('r', 3)).toEqual({ ...answer('r', 2), attempt: 3 });
    expect(journal.find('other', 2)).toBeNull();
  });
});

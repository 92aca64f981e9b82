import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openHome } from '../../src/builder';
import { EXCHANGES, QUEUES } from '../../src/link';
import { eventually } from '../support/eventually';
import { removeScratch, scratch } from './scratch';
import type { Control, TestBuilder } from './world';
import { manifestOf, newRepository, startControl, startTestBuilder, there } from './world';

let control: Control;
let builders: TestBuilder[];

beforeEach(async () => {
  control = await startControl();
  builders = [];
});

afterEach(async () => {
  await Promise.all(builders.map((builder) => builder.stop()));
  await control.close();
  removeScratch();
});

async function start(options: Parameters<typeof startTestBuilder>[1] = {}): Promise<TestBuilder> {
  const builder = await startTestBuilder(control, options);
  builders.push(builder);
  return builder;
}

/** The broker's own figures lag behind by its statistics interval. */
async function nothingWaits(...queues: string[]): Promise<void> {
  await eventually(
    async () => {
      for (const queue of queues) expect(await control.waiting(queue)).toEqual({ ready: 0, unacknowledged: 0 });
    },
    { timeoutMs: 15_000, everyMs: 200 },
  );
}

/** Their names for the management API, in the vhost of this test. */
async function connectionsOf(client: string): Promise<string[]> {
  const all = (await control.management('GET', '/api/connections')) as Array<{
    name: string;
    vhost: string;
    client_properties: { connection_name?: string };
  }>;
  const own = all.filter((one) => one.vhost === control.vhost.vhost && (one.client_properties.connection_name ?? '').startsWith(client));
  return own.map((one) => one.name);
}

/** Command lines of this machine that hold the mark. */
function alive(mark: string): string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return line.includes(mark) ? [line] : [];
      } catch {
        return [];
      }
    });
}

describe('an inspection', () => {
  test('of a good commit gives the manifest as its author wrote it', async () => {
    await start();
    const repository = newRepository();
    const commit = repository.commit({
      'module.yaml': `module: ${repository.module}\nbuild: { timeout: 2m }\nclaims: [{ resource: port/80, scope: node }]\n`,
    });
    expect(await control.answerTo(await control.inspect(repository, commit))).toMatchObject({
      kind: 'inspect',
      outcome: 'valid',
      manifest: { module: repository.module, build: { timeout: '2m' } },
      notes: [],
    });
  });

  test('of a broken one names line, key and what was meant; without a module.yaml that is said', async () => {
    const builder = await start();
    const repository = newRepository();
    const without = repository.commit({ 'README.md': 'nothing' });
    const broken = repository.commit({ 'module.yaml': `module: ${repository.module}\nbuild:\n  tset: make\n` });
    expect(await control.answerTo(await control.inspect(repository, broken))).toMatchObject({
      outcome: 'invalid',
      problems: [{ file: 'module.yaml', line: 3, key: 'build.tset', message: expect.stringContaining('did you mean `test`?') }],
    });
    expect(await control.answerTo(await control.inspect(repository, without))).toMatchObject({
      outcome: 'invalid',
      problems: [{ file: 'module.yaml', line: 1, message: expect.stringContaining('there is no module.yaml at the root') }],
    });
    expect(readdirSync(join(builder.home, 'work'))).toEqual([]);
  });

  test('does not follow a module.yaml that is a link, nor read one that is a directory', async () => {
    await start();
    const repository = newRepository();
    const directory = repository.url.slice('file://'.length);
    symlinkSync('/etc/passwd', join(directory, 'module.yaml'));
    const link = repository.commit({});
    expect(await control.answerTo(await control.inspect(repository, link))).toMatchObject({
      outcome: 'invalid',
      problems: [{ message: expect.stringContaining('symbolic link') }],
    });
    const other = newRepository();
    mkdirSync(join(other.url.slice('file://'.length), 'module.yaml'));
    writeFileSync(join(other.url.slice('file://'.length), 'module.yaml', 'x'), '');
    expect(await control.answerTo(await control.inspect(other, other.commit({})))).toMatchObject({
      outcome: 'invalid',
      problems: [{ message: expect.stringContaining('not a file') }],
    });
  });

  test('of a repository that is not there is environmental', async () => {
    await start();
    const repository = newRepository();
    const gone = { ...repository, url: 'file:///nowhere/at/all' };
    expect(await control.answerTo(await control.inspect(gone, 'a'.repeat(40)))).toMatchObject({ outcome: 'environment' });
  });
});

describe('a request', () => {
  test('is claimed before it is begun, and dropped where the control plane says so', async () => {
    control.decide = () => ({ v: 1, answer: 'drop', reason: 'superseded' });
    await start();
    const repository = newRepository();
    const commit = repository.commit(manifestOf(repository, {}));
    const request = await control.build(repository, commit);
    await eventually(() =>
      there(
        control.claims.find((one) => one.request === request),
        'the claim',
      ),
    );
    await nothingWaits('build.linux-amd64');
    expect(control.claims).toEqual([{ v: 1, request, attempt: 1, builder: 'builder-1', platform: 'linux-amd64' }]);
    expect(control.answers).toEqual([]);
  });

  test('that nobody replies to goes back and is claimed again', async () => {
    let asked = 0;
    control.decide = () => (++asked < 2 ? null : { v: 1, answer: 'go', reason: '' });
    await start();
    const repository = newRepository();
    const request = await control.build(repository, repository.commit(manifestOf(repository, {})));
    expect(await control.answerTo(request)).toMatchObject({ outcome: 'fit' });
    expect(control.claims.length).toBeGreaterThanOrEqual(2);
  });

  test('that is not wanted any more is killed, and answered as cancelled', async () => {
    const mark = `cancel-${Date.now()}`;
    let isWanted = true;
    control.decide = () => (isWanted ? { v: 1, answer: 'go', reason: '' } : { v: 1, answer: 'drop', reason: 'cancelled by ada: wrong branch' });
    await start({ beatMs: 200 });
    const repository = newRepository();
    const request = await control.build(
      repository,
      repository.commit(manifestOf(repository, { run: `setsid sh -c 'sleep 600; : ${mark}' & sleep 600` })),
    );
    await eventually(() => expect(alive(mark).length).toBeGreaterThan(0));
    isWanted = false;
    expect(await control.answerTo(request, 5_000)).toMatchObject({ outcome: 'cancelled', reason: 'cancelled by ada: wrong branch' });
    expect(alive(mark)).toEqual([]);
  });

  test('that was answered is answered again with the same, by a builder that was started anew too', async () => {
    const home = join(scratch(), 'home');
    const first = await startTestBuilder(control, { home });
    const repository = newRepository();
    const commit = repository.commit(manifestOf(repository, { run: 'date +%s%N > now' }, { now: { file: 'now' } }));
    const request = await control.build(repository, commit);
    const answered = await control.answerTo(request);
    await control.build(repository, commit, { request });
    await eventually(() => expect(control.answers).toHaveLength(2));
    await first.stop();
    await start({ home });
    await control.build(repository, commit, { request });
    await eventually(() => expect(control.answers).toHaveLength(3));
    // The verdict ends the build, whatever attempt is asked for.
    await control.build(repository, commit, { request, attempt: 2 });
    await eventually(() => expect(control.answers).toHaveLength(4));
    expect(control.answers).toEqual([answered, answered, answered, { ...answered, attempt: 2 }]);
    expect(control.claims.filter((one) => one.request === request && one.attempt === 2)).toEqual([]);
    await nothingWaits('build.linux-amd64');
  });

  test('whose delivery the broker takes back while it runs joins the running build: one build, one answer', async () => {
    const builder = await start({ beatMs: 300 });
    const repository = newRepository();
    const wait = 'echo begun; until [ -e $HOME/go ]; do sleep 0.05; done';
    const request = await control.build(repository, repository.commit(manifestOf(repository, { run: wait })));
    await eventually(() =>
      there(
        control.linesOf(request).find((line) => line === 'begun'),
        'the build',
      ),
    );
    // What the broker's consumer time-out does to a channel, for both connections at once.
    const closed = new Set<string>();
    for (let round = 1; round <= 2; round++) {
      // The broker lists a connection a while after it is gone.
      const open = await eventually(
        async () => {
          const own = (await connectionsOf('builder-1')).filter((name) => !closed.has(name));
          expect(own).toHaveLength(2);
          return own;
        },
        { timeoutMs: 15_000, everyMs: 200 },
      );
      for (const name of open) {
        closed.add(name);
        await control.management('DELETE', `/api/connections/${encodeURIComponent(name)}`);
      }
      await eventually(() => expect(builder.said.filter((sentence) => sentence.startsWith('delivered again'))).toHaveLength(round), {
        timeoutMs: 15_000,
      });
    }
    writeFileSync(join(builder.home, 'homes', repository.module, 'go'), '');
    expect(await control.answerTo(request)).toMatchObject({ outcome: 'fit' });
    await nothingWaits('build.linux-amd64');
    expect(control.answers.filter((one) => one.request === request)).toHaveLength(1);
    expect(control.linesOf(request).filter((line) => line === 'begun')).toHaveLength(1);
  }, 60_000);

  test('that cannot be read goes to the dead letters with its reason', async () => {
    await start();
    await control.link.publish(EXCHANGES.requests, 'inspect', { v: 7, hello: 'there' });
    await nothingWaits('inspect');
    await eventually(async () => expect((await control.waiting(QUEUES.dead)).ready).toBe(1), { timeoutMs: 15_000, everyMs: 200 });
  });
});

describe('a builder', () => {
  test('builds one at a time, whatever queue it reads, and inspects beside a build', async () => {
    const builder = await start({ platforms: ['linux-amd64', 'linux-arm64'] });
    const repository = newRepository();
    // Two that run together would see each other's file in their common home.
    const alone = 'test ! -e $HOME/busy; touch $HOME/busy; sleep 1; rm $HOME/busy';
    const commit = repository.commit(manifestOf(repository, { run: alone }));
    const first = await control.build(repository, commit);
    const second = await control.build(repository, commit);
    await eventually(() =>
      there(
        control.beats.find((beat) => beat.busy.some((one) => one.step === 'run')),
        'a busy beat',
      ),
    );
    const looked = await control.answerTo(await control.inspect(repository, commit));
    expect(looked).toMatchObject({ outcome: 'valid' });
    expect(control.answers.map((one) => one.request)).not.toContain(second);
    expect(await control.answerTo(first)).toMatchObject({ outcome: 'fit' });
    expect(await control.answerTo(second)).toMatchObject({ outcome: 'fit' });
    const beat = there(control.beats.at(-1), 'a beat');
    expect(beat).toMatchObject({ builder: 'builder-1', publicKey: builder.publicKey, platforms: ['linux-amd64', 'linux-arm64'] });
  });

  test('that is shut down ends its build and says so: environmental, at once', async () => {
    const builder = await startTestBuilder(control);
    const repository = newRepository();
    const request = await control.build(repository, repository.commit(manifestOf(repository, { run: 'echo begun; sleep 600' })));
    await eventually(() =>
      there(
        control.linesOf(request).find((line) => line === 'begun'),
        'the build',
      ),
    );
    await builder.stop();
    expect(await control.answerTo(request)).toMatchObject({ outcome: 'environment', step: 'run', reason: 'builder builder-1 was shut down' });
    await nothingWaits('build.linux-amd64');
    expect(readdirSync(join(builder.home, 'work'))).toEqual([]);
  });

  test('without room on its disk, or without its registry, answers environmental', async () => {
    await start({ limits: { minDiskBytes: 2 ** 60 } });
    const repository = newRepository();
    const commit = repository.commit(manifestOf(repository, { run: 'echo x > x' }, { x: { file: 'x' } }));
    expect(await control.answerTo(await control.build(repository, commit))).toMatchObject({
      outcome: 'environment',
      step: 'begin',
      reason: expect.stringMatching(/^the builder has \d+ MiB of disk left/),
    });
    await builders.pop()?.stop();
    await start({ registryUrl: 'http://127.0.0.1:9' });
    expect(await control.answerTo(await control.build(repository, commit, { attempt: 2 }))).toMatchObject({
      outcome: 'environment',
      step: 'push',
      log: null,
    });
  });

  test('that cannot get a commit in time says so and leaves nothing of it', async () => {
    const builder = await start({ limits: { checkoutMs: 1 } });
    const repository = newRepository();
    const commit = repository.commit(manifestOf(repository, {}));
    expect(await control.answerTo(await control.build(repository, commit))).toMatchObject({ outcome: 'environment', step: 'checkout' });
    expect(await control.answerTo(await control.inspect(repository, commit))).toMatchObject({ outcome: 'environment' });
    expect(readdirSync(join(builder.home, 'work'))).toEqual([]);
  });

  test('keeps the homes of modules within its bound, the newest first', async () => {
    const builder = await start({ limits: { cacheBytes: 3 << 20 } });
    const fill = 'head -c 2000000 /dev/zero > $HOME/fill; mkdir -p $HOME/locked; touch $HOME/locked/x; chmod 500 $HOME/locked';
    const modules: string[] = [];
    for (let i = 0; i < 3; i++) {
      const repository = newRepository();
      modules.push(repository.module);
      expect(await control.answerTo(await control.build(repository, repository.commit(manifestOf(repository, { run: fill }))))).toMatchObject({
        outcome: 'fit',
      });
    }
    await eventually(() => expect(readdirSync(join(builder.home, 'homes'))).toEqual([modules[2]]));
  });

  test('has its directory for itself, and finds no leftovers in it', async () => {
    const directory = join(scratch(), 'home');
    const home = await openHome(directory);
    await expect(openHome(directory)).rejects.toThrow(/another builder works in/);
    const work = await home.newWork();
    await home.release();
    const again = await openHome(directory);
    expect(readdirSync(join(directory, 'work'))).toEqual([]);
    expect(work.directory).toContain('/work/');
    await again.release();
  });
});

import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureBuilderAccount, findManagement } from '../../src/link';
import { eventually } from '../support/eventually';
import { registryUrl } from '../support/servers';
import { removeScratch, scratch } from './scratch';
import type { Control } from './world';
import { manifestOf, newRepository, startControl, there } from './world';

/** The builder as a process of its own, with an account that may do no more than a builder may. */

const root = join(__dirname, '..', '..');
const running: ChildProcess[] = [];
let control: Control;
let home: string;

beforeEach(async () => {
  control = await startControl();
  home = join(scratch(), 'home');
});

afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  await control.close();
  removeScratch();
});

/** @param around a command that runs the builder. */
async function startWorker(around: string[] = []): Promise<ChildProcess> {
  const { user, password } = await ensureBuilderAccount(await findManagement(control.vhost.amqpUrl, control.vhost.managementUrl), 'builder-1');
  const url = new URL(control.vhost.amqpUrl);
  url.username = user;
  url.password = password;
  const [program = '', ...args] = [
    ...around,
    process.execPath,
    '-r',
    join(root, 'test', 'support', 'typescript.cjs'),
    join(root, 'workers', 'builder.ts'),
  ];
  const child = spawn(program, args, {
    env: {
      ...{ PATH: process.env.PATH, AMQP_URL: url.href, REGISTRY_URL: registryUrl(), TALLY_BUILDER_NAME: 'builder-1', TALLY_BUILDER_HOME: home },
      ...{ TALLY_PLATFORMS: 'linux-amd64', TALLY_TIMES_BUILDER_BEAT: '500ms', TALLY_BUILDER_MIN_DISK: '64M' },
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  running.push(child);
  return child;
}

function alive(mark: string): number {
  return readdirSync('/proc').filter((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes(mark);
    } catch {
      return false;
    }
  }).length;
}

test('a builder that is killed in mid-build leaves nothing behind; started again it builds what it held, once', async () => {
  const mark = `killed-${Date.now()}`;
  const first = await startWorker();
  const repository = newRepository();
  const run = `test -e $HOME/go || { setsid sh -c 'sleep 600; : ${mark}' & sleep 600; }`;
  const request = await control.build(repository, repository.commit(manifestOf(repository, { run })));
  // The first sign of it: at this moment it may not even have its namespace yet.
  await eventually(() => expect(alive(mark)).toBeGreaterThan(0), { timeoutMs: 20_000, everyMs: 2 });
  first.kill('SIGKILL');
  await once(first, 'exit');
  await eventually(() => expect(alive(mark)).toBe(0), { timeoutMs: 2_000 });
  expect(readdirSync(join(home, 'work'))).toHaveLength(1);

  writeFileSync(join(home, 'homes', repository.module, 'go'), '');
  await startWorker();
  expect(await control.answerTo(request)).toMatchObject({ outcome: 'fit', attempt: 1 });
  expect(control.answers).toHaveLength(1);
  expect(readdirSync(join(home, 'work'))).toEqual([]);
  expect(groups()).toEqual([]);
}, 60_000);

/** Control groups of the builder in this home. */
function groups(): string[] {
  const id = createHash('sha256').update(realpathSync(home)).digest('hex').slice(0, 16);
  try {
    return readdirSync('/sys/fs/cgroup/pids').filter((entry) => entry.startsWith(`tally-builder-${id}`));
  } catch {
    return [];
  }
}

test('SIGTERM ends a builder within seconds, with its build answered', async () => {
  const worker = await startWorker();
  const repository = newRepository();
  const request = await control.build(repository, repository.commit(manifestOf(repository, { run: 'echo begun; sleep 600' })));
  await eventually(
    () =>
      there(
        control.linesOf(request).find((line) => line === 'begun'),
        'the build',
      ),
    { timeoutMs: 20_000 },
  );
  worker.kill('SIGTERM');
  const [status] = (await once(worker, 'exit')) as [number];
  expect(status).toBe(0);
  expect(await control.answerTo(request)).toMatchObject({ outcome: 'environment', reason: 'builder builder-1 was shut down' });
});

test('a module that fills the disk is the trouble of the builder: environmental, and the next one builds', async () => {
  // A small file system for the builder alone, in a user namespace: so this is also a builder that is not root.
  mkdirSync(home);
  const small = [
    'unshare',
    '--user',
    '--map-root-user',
    '--mount',
    '--kill-child',
    'sh',
    '-c',
    'mount -t tmpfs -o size=120m small "$0" && exec "$@"',
    home,
  ];
  await startWorker(small);
  const repository = newRepository();
  const full = await control.build(repository, repository.commit(manifestOf(repository, { run: 'head -c 300M /dev/zero > big; sleep 600' })));
  expect(await control.answerTo(full, 30_000)).toMatchObject({
    outcome: 'environment',
    step: 'run',
    reason: expect.stringMatching(/^run: the builder's disk is full/),
  });
  const next = await control.build(repository, repository.commit(manifestOf(repository, { run: 'true' })));
  expect(await control.answerTo(next)).toMatchObject({ outcome: 'fit' });
});

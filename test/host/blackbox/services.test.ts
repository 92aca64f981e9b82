/** Services as processes: what is reported is what they do, there is one of each, and they outlive the host. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { DeclaredResource } from '../../../src/schema/declaration';
import { eventually } from '../../support/eventually';
import { action, builtHost, file, type Machine, machine, processesWith, service } from './machine';

const host = builtHost();
let one: Machine;

beforeEach(() => {
  one = machine(host.entry);
});
afterEach(() => one.remove());
afterAll(() => host.remove());

/** Writes its pid where it can be read, and waits. */
function waiting(name: string, more: Parameters<typeof service>[2] = {}): DeclaredResource {
  return service(name, ['/bin/sh', '-c', `echo $$ > \${root}/${name}.pid; while :; do sleep 1; done`], more);
}

function copiesOf(name: string): number {
  return processesWith(`/bin/sh\0-c\0echo $$ > ${one.root}/${name}.pid`).filter((pid) => commandOf(pid).startsWith('/bin/sh\0-c\0echo')).length;
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
}

function pidOf(name: string): number {
  return Number(readFileSync(join(one.root, `${name}.pid`), 'utf8'));
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('applied again it is the same process; a changed spec is a new one, and the old is gone', async () => {
  expect(await one.once([waiting('a')])).toMatchObject({ status: 0, err: '' });
  const first = pidOf('a');
  expect(isAlive(first)).toBe(true);
  expect(await one.once([waiting('a')])).toMatchObject({ status: 0 });
  expect(await one.host('--once')).toMatchObject({ status: 0 });
  expect(pidOf('a')).toBe(first);
  expect(isAlive(first)).toBe(true);
  expect(await one.once([waiting('a', { env: { CHANGED: 'yes' } })])).toMatchObject({ status: 0 });
  expect(pidOf('a')).not.toBe(first);
  expect(isAlive(first)).toBe(false);
  expect(readFileSync(`/proc/${pidOf('a')}/environ`, 'utf8')).toContain('CHANGED=yes');
});

test('it is started again when an earlier resource of its module changed, and not for one of another module or a later one', async () => {
  const resources = (a: string, later: string, web: string): DeclaredResource[] => [
    file('/etc/web', web, { module: 'web' }),
    file('/etc/a', a),
    waiting('a'),
    file('/etc/later', later),
  ];
  await one.once(resources('1', '1', '1'));
  const first = pidOf('a');
  await one.once(resources('1', '2', '2'));
  expect(pidOf('a')).toBe(first);
  expect(await one.once(resources('2', '2', '2'))).toMatchObject({ status: 0 });
  expect(pidOf('a')).not.toBe(first);
  expect(isAlive(first)).toBe(false);
});

test('one that is no longer declared is stopped, with its whole group, also when it ignores SIGTERM', async () => {
  const stubborn = service(
    'stubborn',
    [
      '/bin/sh',
      '-c',
      'trap "" TERM; sh -c \'trap "" TERM; while :; do sleep 1; done\' "$0" & echo $$ > ${root}/stubborn.pid; while :; do sleep 1; done',
      `mark-${one.dir}`,
    ],
    {
      stopWithin: 300,
    },
  );
  expect(await one.once([stubborn])).toMatchObject({ status: 0, err: '' });
  expect(processesWith(`mark-${one.dir}`).length).toBeGreaterThanOrEqual(2);
  expect(await one.once([])).toMatchObject({ status: 0 });
  expect(processesWith(`mark-${one.dir}`)).toEqual([]);
});

test('one that ends is started again; one that keeps ending is a failure, in its own words', async () => {
  expect(await one.once([waiting('a')])).toMatchObject({ status: 0 });
  const first = pidOf('a');
  process.kill(first, 'SIGKILL');
  await eventually(() => pidOf('a') !== first && isAlive(pidOf('a')), { timeoutMs: 10_000 });
  const ran = await one.once([waiting('a'), service('broken', ['/bin/sh', '-c', 'echo no such table >&2; exit 7'])]);
  expect(ran.status).toBe(1);
  expect(`${ran.out}${ran.err}`).toMatch(/service\/broken.*7/);
});

test('ready is what it does: http, tcp and exec, within its time', async () => {
  const port = await freePort();
  const answers = `require('http').createServer((_, r) => { r.statusCode = require('fs').existsSync('${one.root}/sick') ? 500 : 200; r.end('ok') }).listen(${port}, '127.0.0.1')`;
  const http = (within: number, path = '/'): DeclaredResource =>
    service('web', [process.execPath, '-e', answers], { ready: { http: `http://127.0.0.1:${port}${path}`, within } });
  expect(await one.once([http(10_000)])).toMatchObject({ status: 0, err: '' });
  writeFileSync(join(one.root, 'sick'), '');
  const sick = await one.once([http(700)]);
  expect(sick.status).toBe(1);
  expect(`${sick.out}${sick.err}`).toMatch(/service\/web.*500/);
  const tcp = service('web', [process.execPath, '-e', answers], { ready: { tcp: `127.0.0.1:${port}`, within: 10_000 } });
  expect(await one.once([tcp])).toMatchObject({ status: 0, err: '' });
  const exec = service('web', [process.execPath, '-e', answers], { ready: { exec: ['test', '-e', '${root}/sick'], within: 5_000 } });
  expect(await one.once([exec])).toMatchObject({ status: 0, err: '' });
}, 60_000);

test('`stop` ends all services and the next start brings them up again', async () => {
  await one.once([waiting('a'), waiting('bb')]);
  const before = [pidOf('a'), pidOf('bb')];
  expect(await one.stop()).toMatchObject({ status: 0, err: '' });
  expect(before.map(isAlive)).toEqual([false, false]);
  expect(processesWith(one.state)).toEqual([]);
  expect(await one.host('--once')).toMatchObject({ err: '' });
  expect([pidOf('a'), pidOf('bb')].map(isAlive)).toEqual([true, true]);
});

test('a service whose supervisor was killed is running once again, never twice', async () => {
  await one.once([waiting('a')]);
  const first = pidOf('a');
  for (const pid of processesWith(one.state)) if (pid !== first) process.kill(pid, 'SIGKILL');
  expect(await one.host('--once')).toMatchObject({ err: '' });
  expect(copiesOf('a')).toBe(1);
  expect(isAlive(pidOf('a'))).toBe(true);
});

test('an action runs only while its condition does not hold, and must make it hold', async () => {
  const make = action('make', ['/bin/sh', '-c', 'echo run >> ${root}/runs; touch ${root}/made'], ['test', '-e', '${root}/made']);
  expect(await one.once([make])).toMatchObject({ status: 0, err: '' });
  expect(await one.once([make])).toMatchObject({ status: 0 });
  expect(readFileSync(join(one.root, 'runs'), 'utf8')).toBe('run\n');
  const idle = await one.once([action('idle', ['true'], ['test', '-e', '${root}/never']), file('/after', 'x')]);
  expect(idle.status).toBe(1);
  expect(`${idle.out}${idle.err}`).toContain('action/idle');
  expect(existsSync(join(one.root, 'after'))).toBe(false);
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

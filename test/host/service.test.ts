import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { stopServices } from '../../src/host';
import { unitText } from '../../src/host/systemd';
import { eventually } from '../support/eventually';
import { archive, file, type Machine, machine, processesWith, service } from './machine';

let m: Machine;

beforeEach(() => {
  m = machine();
});
afterEach(() => m.remove());

const failuresOf = ({ modules }: Awaited<ReturnType<Machine['apply']>>) => modules.flatMap(({ failures }) => failures);
const changedBy = ({ modules }: Awaited<ReturnType<Machine['apply']>>) => modules.flatMap(({ changes }) => changes.map(({ resource }) => resource));

/** Says where it runs and what it sees, and then notes in `starts` that it does. */
const SCRIPT = `
const fs = require('node:fs');
fs.writeFileSync(process.env.OUT + '/seen', JSON.stringify({ cwd: process.cwd(), env: process.env, args: process.argv.slice(2) }));
fs.appendFileSync(process.env.OUT + '/starts', process.pid + '\\n');
process.on('SIGTERM', () => { if (process.env.STUBBORN !== '1') process.exit(0); });
setInterval(() => undefined, 1000);
`;

function program(name: string, over: { readonly env?: Record<string, string>; readonly args?: string[]; readonly stopWithin?: number } = {}) {
  writeFileSync(join(m.folder, 'service.js'), SCRIPT);
  const { env = {}, args = [], stopWithin = 2_000 } = over;
  // However long a busy machine takes to start it.
  const hasNoted = `d=${m.state}/services/${name}; grep -qx "$(cut -d' ' -f1 "$d/$(cat "$d/token").service")" ${m.folder}/starts`;
  const ready = { exec: ['sh', '-c', hasNoted], within: 20_000 };
  return service(name, [process.execPath, join(m.folder, 'service.js'), name, ...args], { env: { OUT: m.folder, ...env }, ready, stopWithin });
}

const starts = (): number[] =>
  existsSync(join(m.folder, 'starts')) ? readFileSync(join(m.folder, 'starts'), 'utf8').trim().split('\n').map(Number) : [];
const running = (name: string): number[] =>
  processesWith(process.execPath, join(m.folder, 'service.js'), name).filter((pid) => starts().includes(pid));

test('a service runs with its own environment under the root, and holds', async () => {
  process.env.SECRET_OF_THE_HOST = 'secret';
  const declared = [program('web', { env: { WHERE: '${root}/x' }, args: ['${root}', 'a b', '$HOME'] })];
  const pass = await m.apply(declared);
  delete process.env.SECRET_OF_THE_HOST;
  expect(failuresOf(pass)).toEqual([]);
  const seen = JSON.parse(readFileSync(join(m.folder, 'seen'), 'utf8')) as { cwd: string; env: Record<string, string>; args: string[] };
  expect(seen).toMatchObject({ cwd: m.root, args: ['web', m.root, 'a b', '$HOME'], env: { WHERE: `${m.root}/x`, PATH: process.env.PATH } });
  expect(seen.env.SECRET_OF_THE_HOST).toBeUndefined();
  expect((await m.apply(declared)).hasChanged).toBe(false);
  expect(starts()).toHaveLength(1);
});

test('it is started again when it ends, and outlives its host as the same process', async () => {
  const declared = [program('web')];
  await m.apply(declared);
  const [first = 0] = running('web');
  process.kill(first, 'SIGKILL');
  const second = await eventually(() => running('web').find((pid) => pid !== first) ?? null);
  m.restart();
  expect((await m.apply(declared)).hasChanged).toBe(false);
  expect(running('web')).toEqual([second]);
});

test('it is started anew when its spec or an earlier resource of its module changes, and for nothing else', async () => {
  const first = await m.archive({ code: '1' });
  const second = await m.archive({ code: '2' });
  const of = (code: typeof first, conf: string, env: string, other: string) => [
    file('/etc/other', other, { module: 'a' }),
    archive('/opt/app', code),
    file('/etc/conf', conf),
    program('web', { env: { MODE: env } }),
    file('/etc/after', other),
  ];
  await m.apply(of(first, '1', '1', '1'));
  expect(changedBy(await m.apply(of(first, '1', '1', '2')))).toEqual(['file/etc/other', 'file/etc/after']);
  expect(starts()).toHaveLength(1);
  expect(changedBy(await m.apply(of(second, '1', '1', '2')))).toEqual(['archive/opt/app', 'service/web']);
  expect(changedBy(await m.apply(of(second, '2', '1', '2')))).toEqual(['file/etc/conf', 'service/web']);
  expect(changedBy(await m.apply(of(second, '2', '2', '2')))).toEqual(['service/web']);
  m.plant('etc/conf', 'meddled');
  expect((await m.apply(of(second, '2', '2', '2'))).modules.flatMap(({ changes }) => changes)).toEqual([
    { resource: 'file/etc/conf', cause: 'corrective' },
    { resource: 'service/web', cause: 'corrective' },
  ]);
  expect(starts()).toHaveLength(5);
  expect(running('web')).toHaveLength(1);
});

test('one that does not stay up fails with its last words, and is still there to come up later', async () => {
  const flag = join(m.folder, 'flag');
  const declared = [service('web', ['sh', '-c', `test -e ${flag} || { echo no flag >&2; exit 3; }; exec sleep 1000`])];
  const failure = { resource: 'service/web', message: expect.stringMatching(/(ended within|does not stay up).*no flag/) };
  await eventually(async () => expect(failuresOf(await m.apply(declared))).toEqual([failure]));
  writeFileSync(flag, '');
  await eventually(async () => expect(failuresOf(await m.apply(declared))).toEqual([]));
});

test('a program that is nowhere is named', async () => {
  const declared = [service('web', ['no-such-program'])];
  await eventually(async () => expect(failuresOf(await m.apply(declared))[0]?.message).toContain('no-such-program'));
});

describe('one with a probe', () => {
  let server: Server;
  let status: number;
  beforeEach(async () => {
    status = 503;
    server = createServer((_request, response) => response.writeHead(status).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => server.close());

  test('is held once it answers well, and drifts when it does not any more', async () => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const declared = [service('web', ['sleep', '1000'], { ready: { http: url, within: 2_000 } })];
    expect(failuresOf(await m.apply(declared))[0]?.message).toBe(`it is not ready within 2000 ms: ${url} answers 503`);
    status = 200;
    expect(failuresOf(await m.apply(declared))).toEqual([]);
    expect((await m.apply(declared)).hasChanged).toBe(false);
    status = 500;
    expect((await m.apply(declared)).hasFailed).toBe(true);
  });

  test('by tcp and by a command', async () => {
    const { port } = server.address() as AddressInfo;
    const of = (ready: object) => [service('web', ['sleep', '1000'], { ready: { within: 2_000, ...ready } })];
    expect(failuresOf(await m.apply(of({ tcp: `127.0.0.1:${port}` })))).toEqual([]);
    expect(failuresOf(await m.apply(of({ tcp: '127.0.0.1:1' })))[0]?.message).toContain('does not accept');
    expect(failuresOf(await m.apply(of({ exec: ['test', '-d', '${root}'] })))).toEqual([]);
    expect(failuresOf(await m.apply(of({ exec: ['sh', '-c', 'echo not yet; false'] })))[0]?.message).toContain('not yet');
  });
});

test('stopping ends all that it started, by force where it must', async () => {
  const stubborn = service('stubborn', ['sh', '-c', 'trap "" TERM; sleep 987654 & sleep 987653; wait'], { stopWithin: 300 });
  await m.apply([stubborn, program('web', { env: { STUBBORN: '1' }, stopWithin: 300 })]);
  await eventually(() => processesWith('sleep', '987654').length === 1);
  await m.apply([]);
  expect([...processesWith('sleep', '987654'), ...processesWith('sleep', '987653'), ...running('web')]).toEqual([]);
  expect(readdirSync(join(m.state, 'services'))).toEqual([]);
});

test('all services of a state directory are stopped together, and the next pass brings them up', async () => {
  const declared = [program('web'), program('api')];
  await m.apply(declared);
  m.restart();
  await stopServices(m.state);
  expect([...running('web'), ...running('api')]).toEqual([]);
  expect(changedBy(await m.apply(declared))).toEqual(['service/web', 'service/api']);
  expect([running('web').length, running('api').length]).toEqual([1, 1]);
});

test('whose supervisor was killed is ended and started under a new one, never twice', async () => {
  const declared = [program('web')];
  await m.apply(declared);
  for (const pid of processesWith(join(m.state, 'supervisor.sh'))) process.kill(pid, 'SIGKILL');
  expect((await m.apply(declared)).modules[0]?.changes).toEqual([{ resource: 'service/web', cause: 'corrective' }]);
  expect(running('web')).toHaveLength(1);
});

test('its log is kept short', async () => {
  await m.apply([service('web', ['sleep', '1000'])]);
  const log = join(m.state, 'services/web/log');
  appendFileSync(log, `${'x'.repeat(99)}\n`.repeat(20_000));
  await eventually(() => statSync(log).size < 1_000, { timeoutMs: 15_000 });
  expect(statSync(`${log}.old`)).toMatchObject({ size: 512 << 10, mode: 0o100600 });
});

test('a unit of systemd says the same, word for word', () => {
  const unit = unitText({
    name: 'web',
    command: ['node', 'a b', '50%', '$HOME', '"q"\\'],
    environmentFile: '/etc/a b%.env',
    env: { A: 'x "y" $z' },
    directory: '/opt/100%',
    stopWithinMs: 2_000,
  });
  expect(unit).toContain('ExecStart="/usr/bin/env" "node" "a b" "50%%" "$$HOME" "\\"q\\"\\\\"\n');
  expect(unit).toContain('Environment="A=x \\"y\\" $z"\n');
  expect(unit).toContain('WorkingDirectory=/opt/100%%\n');
  expect(unit).toContain('EnvironmentFile=/etc/a b%%.env\n');
  expect(unit).toContain('TimeoutStopSec=2000ms\n');
});

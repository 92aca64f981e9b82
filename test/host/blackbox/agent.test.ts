/** The host on its link: what it is sent it journals, applies and reports; what it has to say it says until it is heard. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalDigest, nodeQueue, sign } from '../../../src/link';
import { DECLARATION_TYPE, type DeclaredResource } from '../../../src/schema/declaration';
import { eventually } from '../../support/eventually';
import { type Control, pushed, startControl } from './control';
import { action, builtHost, declarationOf, file, type Machine, machine, NODE, processesWith, service } from './machine';

const host = builtHost();
let one: Machine;
let control: Control;

beforeEach(async () => {
  one = machine(host.entry, { TALLY_TIMES_HOST_BEAT: '200', TALLY_TIMES_DRIFT_CHECK: '700', TALLY_LOG_LEVEL: 'silent' });
  control = await startControl(one);
});
afterEach(async () => {
  await one.remove();
  await control.close();
});
afterAll(() => host.remove());

function start(): ChildProcess {
  return one.start('--credentials', control.credentials);
}

async function kill(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
  return child.exitCode;
}

const running = (name: string): DeclaredResource => service(name, ['/bin/sh', '-c', `echo $$ > \${root}/${name}.pid; while :; do sleep 1; done`]);
const pidOf = (name: string): number => Number(one.text(`${name}.pid`));

test('it says who it is, applies what it is sent and reports what is so', async () => {
  start();
  await eventually(() => expect(control.beats.length).toBeGreaterThan(1), { timeoutMs: 15_000 });
  expect(control.beats.at(-1)).toMatchObject({ node: NODE, received: null, applied: null, reads: { versions: [1] } });
  expect([...(control.beats.at(-1)?.reads.shapes ?? [])].sort()).toEqual(['action', 'archive', 'directory', 'file', 'service']);
  expect(statSync(join(one.state)).mode & 0o077).toBe(0);
  const resources = [file('/etc/a', 'on ${root} and $${root}'), running('a'), file('/etc/w', 'w', { module: 'web' })];
  await control.send(resources, 3);
  const report = await control.applied(3);
  expect(report).toMatchObject({
    number: 1,
    declaration: { sequence: 3, digest: canonicalDigest(resources) },
    modules: [
      {
        module: 'app',
        state: 'held',
        failures: [],
        digest: canonicalDigest(resources.slice(0, 2)),
        changes: [
          { resource: 'file/etc/a', cause: 'intentional' },
          { resource: 'service/a', cause: 'intentional' },
        ],
      },
      { module: 'web', state: 'held', failures: [], digest: canonicalDigest(resources.slice(2)) },
    ],
    removed: [],
    refused: null,
  });
  expect(one.text('etc/a')).toBe(`on ${one.root} and \${root}`);
  await eventually(() => expect(control.beats.at(-1)).toMatchObject({ received: { sequence: 3 }, applied: { sequence: 3 }, reportNumber: 1 }));
  // The same again, newly sent: a report although nothing changed.
  await control.send(resources, 4);
  expect(await control.applied(4)).toMatchObject({
    number: 2,
    modules: [
      { module: 'app', state: 'held', changes: [] },
      { module: 'web', state: 'held', changes: [] },
    ],
  });
  await control.send([file('/etc/w', 'w', { module: 'web' })], 5);
  expect((await control.applied(5)).removed.sort()).toEqual(['file/etc/a', 'service/a']);
});

test('drift is found by the timer, put right, and reported as corrective', async () => {
  start();
  await control.send([file('/etc/a', 'a')], 1);
  await control.applied(1);
  const before = control.reports.length;
  writeFileSync(join(one.root, 'etc/a'), 'b');
  const report = await control.report(({ number }) => number > before);
  expect(report.modules).toMatchObject([{ state: 'held', changes: [{ resource: 'file/etc/a', cause: 'corrective' }] }]);
  expect(one.text('etc/a')).toBe('a');
  // What holds says nothing.
  await eventually(() => expect(control.beats.length).toBeGreaterThan(12), { timeoutMs: 15_000 });
  expect(control.reports).toHaveLength(before + 1);
});

test('killed, it finds its services again: the same processes, and never a second copy', async () => {
  let child = start();
  await control.send([file('/etc/a', 'a'), running('a')], 1);
  await control.applied(1);
  const pid = pidOf('a');
  for (let round = 0; round < 3; round += 1) {
    await kill(child);
    const { length } = control.beats;
    child = start();
    await eventually(() => expect(control.beats.length).toBeGreaterThan(length + 4), { timeoutMs: 15_000 });
    expect(pidOf('a')).toBe(pid);
    expect(processesWith(`/bin/sh\0-c\0echo $$ > ${one.root}/a.pid`).length).toBeGreaterThan(0);
    expect(() => process.kill(pid, 0)).not.toThrow();
  }
  expect(new Set(control.reports.map(({ epoch }) => epoch)).size).toBe(1);
  expect(await kill(child, 'SIGTERM')).toBe(0);
  expect(() => process.kill(pid, 0)).not.toThrow();
});

test('a refusal is reported, and what holds goes on; the next good one is taken', async () => {
  start();
  await control.send([file('/etc/a', 'a')], 5);
  await control.applied(5);
  await control.sendRaw(sign(DECLARATION_TYPE, { ...declarationOf([file('/etc/b', 'b')], 6), version: 9 }, control.key.privateKey));
  const refused = await control.report((report) => report.refused !== null);
  expect(refused).toMatchObject({ declaration: { sequence: 5 }, refused: { sequence: 6 } });
  expect(one.tree()).toEqual({ etc: '755 directory', 'etc/a': '644 a' });
  await control.sendRaw(sign('application/vnd.tally.action.v1+json', { run: ['touch', '/x'] }, control.key.privateKey));
  await control.report((report) => report.refused !== null && report.number > refused.number);
  await control.send([file('/etc/b', 'b')], 7);
  expect(await control.applied(7)).toMatchObject({ removed: ['file/etc/a'] });
});

test('the same declaration delivered again is no refusal: it is taken as received', async () => {
  start();
  await control.send([file('/etc/a', 'a')], 1);
  await control.applied(1);
  await control.send([file('/etc/a', 'a')], 1);
  await eventually(() => expect(control.beats.length).toBeGreaterThan(10), { timeoutMs: 15_000 });
  expect(control.reports.filter((report) => report.refused !== null)).toEqual([]);
});

test('cut off, it goes on, and says what it had to say when the link is back; killed before that, it still does', async () => {
  let child = start();
  await control.send([file('/etc/a', 'a')], 1);
  await control.applied(1);
  await control.cut();
  await eventually(() => expect(control.beats.length).toBeGreaterThan(0));
  await control.send([file('/etc/a', 'b')], 2);
  await control.applied(2);
  // Nobody takes its reports any more: the exchange is gone while it applies.
  await control.link.withChannel((channel) => channel.unbindQueue('reports', `from.${NODE}`, 'report'));
  await control.send([file('/etc/a', 'c')], 3);
  await eventually(() => expect(one.text('etc/a')).toBe('c'), { timeoutMs: 10_000 });
  await eventually(() => expect(control.beats.at(-1)).toMatchObject({ applied: { sequence: 3 } }), { timeoutMs: 10_000 });
  await kill(child);
  child = start();
  await control.link.withChannel((channel) => channel.bindQueue('reports', `from.${NODE}`, 'report'));
  const late = await control.applied(3);
  const numbers = control.reports.map(({ number }) => number);
  expect(late.number).toBe(3);
  expect([...new Set(numbers)]).toEqual([1, 2, 3]);
}, 60_000);

test('the newest declaration wins while one is being applied', async () => {
  start();
  const slow = action('slow', ['/bin/sh', '-c', 'sleep 30; touch ${root}/slow'], ['test', '-e', '${root}/slow']);
  await control.send([file('/etc/a', '1'), slow], 1);
  await eventually(() => expect(one.text('etc/a')).toBe('1'), { timeoutMs: 15_000 });
  await control.send([file('/etc/a', '2')], 2);
  expect(await control.applied(2)).toMatchObject({ modules: [{ state: 'held' }] });
  expect(one.text('etc/a')).toBe('2');
});

test('what failed is tried again, each try is reported, and it ends when it is so', async () => {
  start();
  one.put('etc/a/in-the-way', 'x');
  await control.send([file('/etc/a', 'a'), file('/etc/b', 'b')], 1);
  const second = await control.report(({ number }) => number >= 2);
  expect(second.modules).toMatchObject([{ state: 'failed', failures: [{ resource: 'file/etc/a' }] }]);
  rmSync(join(one.root, 'etc/a'), { recursive: true });
  const held = await control.report(({ modules }) => modules[0]?.state === 'held');
  expect(held.declaration?.sequence).toBe(1);
  expect(one.tree()).toMatchObject({ 'etc/a': '644 a', 'etc/b': '644 b' });
});

test('an archive comes from the registry, is placed whole, and its service starts again with a new version', async () => {
  start();
  const build = join(one.dir, 'build');
  mkdirSync(build);
  const version = async (text: string): Promise<DeclaredResource[]> => {
    writeFileSync(join(build, 'version'), text);
    writeFileSync(join(build, 'run.sh'), `echo $$ > "$1/app.pid"; cat "$(dirname "$0")/version" > "$1/runs"; while :; do sleep 1; done\n`, {
      mode: 0o755,
    });
    const artifact = await pushed(build, one.dir);
    return [
      { module: 'app', id: 'archive/opt/app', shape: 'archive', spec: { path: '/opt/app', artifact } },
      service('app', ['/bin/sh', '${root}/opt/app/run.sh', '${root}']),
    ];
  };
  await control.send(await version('one'), 1);
  expect(await control.applied(1)).toMatchObject({ modules: [{ state: 'held' }] });
  await eventually(() => expect(one.text('runs')).toBe('one'));
  await control.send(await version('two'), 2);
  expect(await control.applied(2)).toMatchObject({
    modules: [{ state: 'held', changes: [{ resource: 'archive/opt/app' }, { resource: 'service/app' }] }],
  });
  await eventually(() => expect(one.text('runs')).toBe('two'));
  expect(readFileSync(join(one.root, 'opt/app/version'), 'utf8')).toBe('two');
  writeFileSync(join(one.root, 'opt/app/version'), 'tampered');
  await control.report(({ modules }) => modules.some(({ changes }) => changes.some(({ cause }) => cause === 'corrective')));
  expect(readFileSync(join(one.root, 'opt/app/version'), 'utf8')).toBe('two');
  await control.send([], 3);
  await control.applied(3);
  expect(one.tree()).not.toHaveProperty('opt');
}, 60_000);

test('it acknowledges what it has journalled: nothing waits in its queue, and a start without the broker knows it', async () => {
  const child = start();
  await control.send([file('/etc/a', 'a')], 1);
  await control.applied(1);
  const { messageCount } = await control.link.withChannel((channel) => channel.checkQueue(nodeQueue(NODE)));
  expect(messageCount).toBe(0);
  await kill(child);
  writeFileSync(join(one.root, 'etc/a'), 'b');
  const ran = await one.host('--once');
  expect(ran.err).toBe('');
  expect(one.text('etc/a')).toBe('a');
});

import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { keptSealKey } from '../../src/host/secrets';
import { createRegistryClient, pushArtifact } from '../../src/registry';
import { eventually } from '../support/eventually';
import { registryUrl } from '../support/servers';
import { journal } from './journalled';
import { archive, declarationOf, file, type Machine, machine, processesWith, service } from './machine';
import { type NodeMesh, nodeMesh } from './mesh';

/** The host as a process, with an account that may do no more than a node may. */

let m: Machine;
let mesh: NodeMesh;

beforeEach(async () => {
  m = machine();
  mesh = await nodeMesh(m);
});
afterEach(async () => {
  await mesh.close();
  await m.remove();
});

const held = (declaration: ReturnType<typeof declarationOf>) => ({ sequence: declaration.sequence, digest: declaration.digest });
const waiting = { timeoutMs: 20_000 };

test('what is declared is applied from the registry, beaten and reported; what is no longer declared is removed', async () => {
  await m.archive({ 'index.html': 'hello' });
  const pushed = await pushArtifact(createRegistryClient({ url: registryUrl() }), {
    ...{ repository: 'tally/host-test', kind: 'archive', path: join(m.folder, 'pack-1.tgz'), tag: 'r1-site' },
  });
  const ref = { repository: 'tally/host-test', digest: pushed.digest, blob: pushed.layer.digest, size: pushed.layer.size };
  rmSync(join(m.state, 'blobs'), { recursive: true });
  mesh.startHost();
  const [first] = await eventually(() => (mesh.beats.length > 0 ? mesh.beats : null), waiting);
  expect(first).toMatchObject({
    node: 'alpha',
    received: null,
    applied: null,
    reportNumber: 0,
    reads: { versions: [1], features: ['secrets', 'undo', 'environmentFile', 'parts'] },
  });
  expect(first?.sealKey).toBe(keptSealKey(m.state).publicKey);
  expect(statSync(join(m.state, 'node.key')).mode & 0o777).toBe(0o600);

  const one = declarationOf([archive('/srv/site', ref), file('/etc/x', 'x', { module: 'n' })], 1);
  await mesh.send(one);
  const [report] = await eventually(() => (mesh.reports.length > 0 ? mesh.reports : null), waiting);
  expect(report).toMatchObject({ number: 1, declaration: held(one), removed: [], refused: null });
  expect(report?.modules).toMatchObject([
    { module: 'm', state: 'held', changes: [{ resource: 'archive/srv/site', cause: 'intentional' }] },
    { module: 'n', state: 'held', changes: [{ resource: 'file/etc/x', cause: 'intentional' }] },
  ]);
  expect(m.read('srv/site/index.html')).toBe('hello');
  await eventually(() => mesh.beats.some(({ received, applied }) => received?.sequence === 1 && applied?.digest === one.digest), waiting);

  const two = declarationOf([file('/etc/x', 'x', { module: 'n' })], 2);
  await mesh.send(two);
  const second = await eventually(() => mesh.reports[1] ?? null, waiting);
  expect(second).toMatchObject({ number: 2, declaration: held(two), removed: ['archive/srv/site'], modules: [{ module: 'n', changes: [] }] });
});

test('a host that starts says what it finds, also where all is as it should be: what it said last may be over', async () => {
  const host = mesh.startHost();
  const one = declarationOf([file('/etc/x', '1')], 1);
  await mesh.send(one);
  await eventually(() => mesh.beats.some(({ applied }) => applied?.sequence === 1), waiting);
  await mesh.kill(host, 'SIGKILL');
  mesh.startHost();
  const again = await eventually(() => mesh.reports.find(({ number }) => number === 2) ?? null, waiting);
  expect(again).toMatchObject({ declaration: held(one), modules: [{ module: 'm', state: 'held', changes: [] }] });
});

test('a refusal is reported, and what runs goes on; the next good one is applied', async () => {
  mesh.startHost();
  const one = declarationOf([file('/etc/x', '1')], 1);
  await mesh.send(one);
  await eventually(() => mesh.reports.length === 1, waiting);
  await mesh.send({ ...declarationOf([file('/etc/x', '2')], 2), node: 'beta' });
  await mesh.sendRaw({ run: 'reboot' });
  const refusals = await eventually(() => (mesh.reports.length >= 2 ? mesh.reports.slice(1) : null), waiting);
  expect(refusals[0]).toMatchObject({ number: 2, declaration: held(one), modules: [], refused: { reason: expect.any(String) } });
  expect(m.read('etc/x')).toBe('1');
  await mesh.send(declarationOf([file('/etc/x', '3')], 3));
  await eventually(() => m.read('etc/x') === '3', waiting);
});

test('SIGKILL of the host leaves its services; the next one adopts them, as the same process and never a second copy', async () => {
  const mark = join(m.folder, 'mark');
  const host = mesh.startHost();
  await mesh.send(declarationOf([service('web', ['sh', '-c', 'sleep 314159; :', mark])], 2));
  await eventually(() => mesh.reports.some(({ declaration, modules }) => declaration?.sequence === 2 && modules[0]?.state === 'held'), waiting);
  const services = (): number[] =>
    processesWith('sh', '-c', mark).filter((pid) => processesWith(join(m.state, 'supervisor.sh')).every((other) => other !== pid));
  const before = services();
  expect(before).toHaveLength(1);
  await mesh.kill(host, 'SIGKILL');
  expect(services()).toEqual(before);
  const beats = mesh.beats.length;
  const reports = mesh.reports.length;
  const next = mesh.startHost();
  await eventually(() => mesh.beats.length > beats + 1, waiting);
  await mesh.send(declarationOf([service('web', ['sh', '-c', 'sleep 314159; :', mark]), file('/etc/x', 'x')], 3));
  await eventually(() => m.tree()['etc/x'] !== undefined, waiting);
  expect(services()).toEqual(before);
  expect(
    mesh.reports.slice(reports).flatMap(({ modules }) => modules.flatMap(({ changes }) => changes.map(({ resource }) => resource))),
  ).not.toContain('service/web');
  await mesh.kill(next, 'SIGTERM');
  expect(next.exitCode).toBe(0);
  expect(services()).toEqual(before);
});

test('reports that could not leave wait over a restart, and leave in their order, each at least once', async () => {
  const host = mesh.startHost({ TALLY_TIMES_DRIFT_CHECK: '300' });
  await mesh.send(declarationOf([file('/etc/x', 'x')], 1));
  await eventually(() => mesh.reports.length === 1, waiting);
  await mesh.cut();
  for (const number of [2, 3]) {
    m.plant('etc/x', `meddled ${number}`);
    await eventually(() => journal(m.state).lastReport >= number, waiting);
  }
  await mesh.kill(host, 'SIGKILL');
  await mesh.mend();
  mesh.startHost();
  await eventually(() => mesh.reports.some(({ number }) => number === 3), waiting);
  const numbers = mesh.reports.map(({ number }) => number);
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  expect(numbers).toEqual(expect.arrayContaining([1, 2, 3]));
  expect(new Set(mesh.reports.map(({ epoch }) => epoch)).size).toBe(1);
  expect(mesh.reports.find(({ number }) => number === 2)?.modules[0]?.changes).toEqual([{ resource: 'file/etc/x', cause: 'corrective' }]);
});

test('the newest declaration does not wait for one that is being applied', async () => {
  mesh.startHost();
  const slow = service('slow', ['sleep', '161803'], { ready: { tcp: '127.0.0.1:1', within: 60_000 } });
  await mesh.send(declarationOf([slow], 1));
  await eventually(() => processesWith('sleep', '161803').length > 0, waiting);
  await mesh.send(declarationOf([file('/etc/x', 'x')], 2));
  const report = await eventually(() => mesh.reports[0] ?? null, waiting);
  expect(report).toMatchObject({ declaration: { sequence: 2 }, removed: ['service/slow'] });
});

test('what failed is tried again by itself, each time reported, until it holds', async () => {
  mesh.startHost({ TALLY_TIMES_DRIFT_CHECK: '400' });
  m.plant('blocked', 'in the way');
  await mesh.send(declarationOf([file('/blocked/x', 'x')], 1));
  await eventually(() => mesh.reports.length >= 3, waiting);
  expect(mesh.reports.every(({ modules }) => modules[0]?.state === 'failed')).toBe(true);
  rmSync(join(m.root, 'blocked'));
  await eventually(() => mesh.reports.at(-1)?.modules[0]?.state === 'held', waiting);
});

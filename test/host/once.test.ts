import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateKeyPair, sign } from '../../src/link';
import { DECLARATION_TYPE, type Declaration } from '../../src/schema/declaration';
import { action, declarationOf, file, type Machine, machine, processesWith, service } from './machine';

/** `tally host --once` and `tally host stop`, as an operator types them. */

const root = join(__dirname, '..', '..');
const mesh = generateKeyPair();
let m: Machine;
let credentials: string;

beforeEach(() => {
  m = machine();
  credentials = join(m.folder, 'credentials.json');
  const content = {
    mesh: 'home',
    node: 'alpha',
    amqpUrl: 'amqp://a:b@127.0.0.1:9',
    registryUrl: 'http://127.0.0.1:9',
    meshPublicKey: mesh.publicKey,
  };
  writeFileSync(credentials, JSON.stringify(content), { mode: 0o600 });
});
afterEach(() => m.remove());

function host(...args: string[]): Promise<{ status: unknown; out: string; err: string }> {
  const program = ['-r', join(root, 'test', 'support', 'typescript.cjs'), join(root, 'workers', 'host.ts')];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...program, ...args],
      { env: { PATH: process.env.PATH, TALLY_TIMES_SERVICE_SETTLE: '200' }, timeout: 25_000 },
      (error, out, err) => resolve({ status: error === null ? 0 : error.code, out, err }),
    );
  });
}

const once = (...args: string[]) => host('--root', m.root, '--state', m.state, '--once', ...args);

function written(content: object): string {
  const path = join(m.folder, 'declaration.json');
  writeFileSync(path, JSON.stringify(content));
  return path;
}

const unsigned = (declaration: Declaration) => once('--declaration', written(declaration), '--unsigned');
const signed = (declaration: Declaration, by = mesh) =>
  once('--declaration', written(sign(DECLARATION_TYPE, declaration, by.privateKey)), '--credentials', credentials);

test('an unsigned declaration is applied, said, and from then on held without being given again', async () => {
  expect(await unsigned(declarationOf([file('/etc/x', 'x')], 1))).toEqual({ status: 0, out: 'm: file/etc/x changed, intentional\n', err: '' });
  expect(await once()).toEqual({ status: 0, out: '', err: '' });
  writeFileSync(join(m.root, 'etc/x'), 'drifted');
  expect(await once()).toEqual({ status: 0, out: 'm: file/etc/x changed, corrective\n', err: '' });
  expect(await unsigned(declarationOf([], 2))).toEqual({ status: 0, out: 'file/etc/x removed\n', err: '' });
  expect(m.tree()).toEqual({});
}, 60_000);

test('what fails is named, with status 1', async () => {
  const failing = [action('a', ['sh', '-c', 'echo no luck; exit 4'], ['false']), file('/etc/skipped', 'x'), file('/etc/other', 'x', { module: 'n' })];
  const ran = await unsigned(declarationOf(failing, 1));
  expect(ran).toMatchObject({ status: 1, err: '' });
  expect(ran.out).toMatch(/^m: action\/a failed: .*ended with status 4: no luck$/m);
  expect(m.tree()).toEqual({ etc: '755', 'etc/other': '644 x' });
});

test('a signed one is checked as one from the link is', async () => {
  expect(await signed(declarationOf([file('/etc/x', 'x')], 3))).toMatchObject({ status: 0, err: '' });
  const stranger = await signed(declarationOf([file('/etc/x', 'y')], 4), generateKeyPair());
  expect(stranger).toMatchObject({ status: 2, out: '', err: expect.stringContaining('its signature does not count') });
  const older = await signed(declarationOf([file('/etc/x', 'y')], 2));
  expect(older).toMatchObject({ status: 2, err: expect.stringContaining('its sequence 2 is not above 3') });
  expect(m.read('etc/x')).toBe('x');
}, 60_000);

test.each<[string, () => Promise<{ status: unknown; out: string; err: string }>, RegExp]>([
  ['nothing to apply', () => once(), /no declaration has been accepted/],
  ['neither --credentials nor --unsigned', () => once('--declaration', written({})), /--unsigned/],
  ['a file that is not there', () => once('--declaration', '/nowhere', '--unsigned'), /cannot read the declaration \/nowhere/],
  ['an unsigned file that is no declaration', () => unsigned({ ...declarationOf([], 1), sequence: 0 }), /is refused: .*sequence/],
  ['an unknown option', () => once('--twice'), /--twice.*use: host/],
  ['no state directory', () => host('--root', m.root, '--once'), /--state is missing/],
  ['a root that is not there', () => host('--root', join(m.folder, 'no'), '--state', m.state, '--once'), /the root .* is not there/],
])('%s is a mistake of whoever asked: one line, status 2', async (_what, run, words) => {
  const { status, err } = await run();
  expect(err).toMatch(words);
  expect(err.trim().split('\n')).toHaveLength(1);
  expect(status).toBe(2);
});

test('stop ends the services and keeps what is known of them', async () => {
  const mark = join(m.folder, 'mark');
  await unsigned(declarationOf([service('web', ['sh', '-c', 'sleep 161803; :', mark])], 1));
  expect(processesWith(mark).length).toBeGreaterThan(0);
  expect(await host('stop', '--state', m.state)).toEqual({ status: 0, out: '', err: '' });
  expect(processesWith(mark)).toEqual([]);
  expect(existsSync(m.state)).toBe(true);
  expect(await once()).toMatchObject({ status: 0 });
  expect(processesWith(mark).length).toBeGreaterThan(0);
}, 60_000);

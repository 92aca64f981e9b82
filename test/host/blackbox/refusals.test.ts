/** Refused whole: nothing of it is applied, and what holds goes on holding. */
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateKeyPair, sign } from '../../../src/link';
import { DECLARATION_TYPE, type Declaration, type DeclaredResource } from '../../../src/schema/declaration';
import { action, builtHost, declarationOf, directory, file, type Machine, MESH, machine, NODE, service } from './machine';

const host = builtHost();
const mesh = generateKeyPair();
const stranger = generateKeyPair();
let one: Machine;

beforeEach(async () => {
  one = machine(host.entry);
  const credentials = {
    mesh: MESH,
    node: NODE,
    amqpUrl: 'amqp://nobody:nothing@127.0.0.1:9',
    registryUrl: 'http://127.0.0.1:9',
    meshPublicKey: mesh.publicKey,
  };
  writeFileSync(join(one.dir, 'credentials.json'), JSON.stringify(credentials), { mode: 0o600 });
});
afterEach(() => one.remove());
afterAll(() => host.remove());

async function tell(payload: unknown, { key = mesh, type = DECLARATION_TYPE }: { key?: typeof mesh; type?: string } = {}) {
  const path = join(one.dir, 'told.json');
  writeFileSync(path, typeof payload === 'string' ? payload : JSON.stringify(sign(type, payload as object, key.privateKey)));
  return await one.host('--credentials', join(one.dir, 'credentials.json'), '--once', '--declaration', path);
}

const good = [file('/etc/good', 'good')];
const holds = (): void => expect(one.tree()).toEqual({ etc: '755 directory', 'etc/good': '644 good' });

/** Sequence 5 holds already. */
function declared(resources: readonly unknown[], over: Record<string, unknown> = {}): Declaration {
  return { ...declarationOf(resources as DeclaredResource[], 6), ...over } as Declaration;
}

const archive = (path: string): DeclaredResource => ({
  module: 'app',
  id: `archive${path}`,
  shape: 'archive',
  spec: { path, artifact: { repository: 'tally/app', digest: `sha256:${'1'.repeat(64)}`, blob: `sha256:${'2'.repeat(64)}`, size: 10 } },
});

const bad = file('/etc/bad', 'bad');

test.each<[string, () => unknown, RegExp]>([
  ['a version that it does not know', () => declared([bad], { version: 2 }), /version/],
  ['a shape that it does not know', () => declared([{ ...bad, shape: 'registry-key' }]), /registry-key|shape/],
  ['a field that it does not know', () => declared([{ ...bad, spec: { ...bad.spec, owner: 'root' } }]), /owner/],
  ['a field of the declaration that it does not know', () => declared([bad], { when: 'now' }), /when/],
  ['a missing field', () => declared([{ module: 'app', id: 'file/etc/bad', shape: 'file', spec: { path: '/etc/bad' } }]), /mode/],
  ["another mesh's", () => declared([bad], { mesh: 'work' }), /work/],
  ["another node's", () => declared([bad], { node: 'beta' }), /beta/],
  ['the sequence that it has seen', () => declared([bad], { sequence: 5 }), /5/],
  ['an older sequence', () => declared([bad], { sequence: 2 }), /2/],
  ['a digest that is not of its content', () => declared([bad], { digest: `sha256:${'0'.repeat(64)}` }), /digest/],
  ['the same target twice', () => declared([bad, { ...bad, module: 'web' }]), /etc\/bad/],
  ['the same target twice in another spelling', () => declared([bad, file('//etc/./bad', 'x', { module: 'web' })]), /etc\/bad/],
  ['a file where a directory is', () => declared([directory('/etc/bad'), bad]), /etc\/bad/],
  ['a file below a file', () => declared([bad, file('/etc/bad/below', 'x')]), /etc\/bad/],
  ['a file in an archive', () => declared([archive('/opt/app'), file('/opt/app/config', 'x')]), /opt\/app/],
  ['an archive in an archive', () => declared([archive('/opt/app'), archive('/opt/app/plugins')]), /opt\/app/],
  ['the same service twice', () => declared([service('a', ['true']), { ...service('a', ['false']), module: 'web' }]), /service\/a|service a/],
  ['a path that leaves the root', () => declared([file('/etc/../../bad', 'x')]), /\.\./],
  ['a path that leaves the root and comes back', () => declared([file('/etc/../etc/bad', 'x')]), /\.\./],
  ['the root itself', () => declared([directory('/')]), /directory|path|\//],
  ['a path with a NUL', () => declared([file('/etc/bad\0', 'x')]), /NUL|path/],
  [
    'a file with a content and an artifact',
    () =>
      declared([
        {
          ...bad,
          spec: { ...bad.spec, artifact: { repository: 'tally/app', digest: `sha256:${'1'.repeat(64)}`, blob: `sha256:${'2'.repeat(64)}`, size: 1 } },
        },
      ]),
    /content|artifact/,
  ],
])('%s', async (_, payload, reason) => {
  expect(await tell(declarationOf(good, 5))).toMatchObject({ status: 0, err: '' });
  const ran = await tell(payload());
  expect(ran.status).not.toBe(0);
  expect(`${ran.out}${ran.err}`).toMatch(reason);
  expect(`${ran.out}${ran.err}`).not.toMatch(/\n\s+at /);
  holds();
  // The next good one is taken as if nothing had been.
  expect(await tell(declarationOf(good, 7))).toMatchObject({ status: 0 });
});

test.each<[string, () => ReturnType<typeof tell>, RegExp]>([
  ['signed by a stranger', () => tell(declared([bad]), { key: stranger }), /sign/],
  ['signed as something else', () => tell(declared([bad]), { type: 'application/vnd.tally.action.v1+json' }), /vnd\.tally\.action/],
  [
    'an action from the link',
    () => tell({ version: 1, action: action('bad', ['touch', '/bad'], ['false']) }, { type: 'application/vnd.tally.action.v1+json' }),
    /vnd\.tally\.action/,
  ],
  ['an action in the place of a declaration', () => tell(action('bad', ['touch', '/bad'], ['false'])), /version|declaration|field/i],
  ['no envelope', () => tell(JSON.stringify(declared([bad]))), /sign|envelope/i],
  ['no JSON', () => tell('{"payloadType":'), /JSON/],
  ['tampered with', () => tampered(), /sign/],
])('%s', async (_, told, reason) => {
  expect(await tell(declarationOf(good, 5))).toMatchObject({ status: 0, err: '' });
  const ran = await told();
  expect(ran.status).not.toBe(0);
  expect(`${ran.out}${ran.err}`).toMatch(reason);
  holds();
});

async function tampered(): ReturnType<typeof tell> {
  const envelope = sign(DECLARATION_TYPE, declared(good), mesh.privateKey);
  return await tell(JSON.stringify({ ...envelope, payload: Buffer.from(JSON.stringify(declared([bad]))).toString('base64') }));
}

test('a link on the way that leads out of the root: refused whole, and nothing beyond it is touched', async () => {
  writeFileSync(join(one.dir, 'secret'), 'as it was');
  symlinkSync(one.dir, join(one.root, 'out'));
  for (const leaving of [file('/out/secret', 'overwritten', { module: 'a' }), directory('/out/made', { module: 'a' }), archive('/out/made/app')]) {
    const ran = await one.once([file('/etc/fine', 'x', { module: 'b' }), leaving]);
    expect(ran.status).not.toBe(0);
    expect(`${ran.out}${ran.err}`).toContain(leaving.id);
    expect(one.tree()).toEqual({ out: `→ ${one.dir}` });
  }
  expect(readFileSync(join(one.dir, 'secret'), 'utf8')).toBe('as it was');
});

test('a way out that is made after the declaration was taken fails its resource alone', async () => {
  writeFileSync(join(one.dir, 'secret'), 'as it was');
  await one.once([file('/etc/secret', 'a', { module: 'a' }), directory('/srv/x', { module: 'c' }), file('/var/x', 'b', { module: 'b' })]);
  rmSync(join(one.root, 'etc'), { recursive: true });
  symlinkSync(one.dir, join(one.root, 'etc'));
  rmSync(join(one.root, 'srv'), { recursive: true });
  symlinkSync(one.dir, join(one.root, 'srv'));
  writeFileSync(join(one.root, 'var/x'), 'drifted');
  const ran = await one.host('--once');
  expect(ran.status).toBe(1);
  expect(`${ran.out}${ran.err}`).toContain('file/etc/secret');
  expect(`${ran.out}${ran.err}`).toContain('directory/srv/x');
  expect(readFileSync(join(one.dir, 'secret'), 'utf8')).toBe('as it was');
  expect(one.text('var/x')).toBe('b');
  expect(existsSync(join(one.dir, 'x'))).toBe(false);
});

test('links within the root are followed on the way, and a target that is a link is adopted as one', async () => {
  writeFileSync(join(one.dir, 'secret'), 'as it was');
  symlinkSync(join(one.dir, 'secret'), join(one.root, 'target'));
  one.put('inner/kept', 'x');
  symlinkSync('inner', join(one.root, 'in'));
  const before = one.tree();
  expect(await one.once([file('/target', 'a file now'), file('/in/new', 'through')])).toMatchObject({ status: 0, err: '' });
  expect(readFileSync(join(one.dir, 'secret'), 'utf8')).toBe('as it was');
  expect(one.tree()).toMatchObject({ target: '644 a file now', 'inner/new': '644 through' });
  await one.once([]);
  expect(one.tree()).toEqual(before);
});

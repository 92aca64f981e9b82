/** Archives that no host may unpack: refused before anything is written, and the version before goes on. */
import { createWriteStream, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { generateKeyPair } from '../../../src/link';
import type { ArtifactRef, DeclaredResource } from '../../../src/schema/declaration';
import { registryUrl } from '../../support/servers';
import { pushed, pushedFile } from './control';
import { builtHost, file, type Machine, MESH, machine, NODE } from './machine';

const host = builtHost();
let one: Machine;
let credentials: string[];

beforeEach(() => {
  one = machine(host.entry);
  const path = join(one.dir, 'credentials.json');
  const content = {
    mesh: MESH,
    node: NODE,
    amqpUrl: 'amqp://nobody:nothing@127.0.0.1:9',
    registryUrl: registryUrl(),
    meshPublicKey: generateKeyPair().publicKey,
  };
  writeFileSync(path, JSON.stringify(content), { mode: 0o600 });
  credentials = ['--credentials', path];
});
afterEach(() => one.remove());
afterAll(() => host.remove());

function archive(artifact: ArtifactRef, path = '/opt/app'): DeclaredResource {
  return { module: 'app', id: `archive${path}`, shape: 'archive', spec: { path, artifact } };
}

async function good(text: string): Promise<ArtifactRef> {
  const dir = join(one.dir, `tree-${text}`);
  mkdirSync(join(dir, 'inner'), { recursive: true });
  writeFileSync(join(dir, 'inner', 'version'), text);
  writeFileSync(join(dir, 'program'), '#!/bin/sh\n', { mode: 0o755 });
  return await pushed(dir, one.dir);
}

async function packedOf(
  entries: ReadonlyArray<Partial<Header> & { readonly name: string; readonly content?: string | Buffer }>,
): Promise<ArtifactRef> {
  const path = join(one.dir, 'bad.tgz');
  const tar = pack();
  const written = pipeline(tar, createGzip(), createWriteStream(path));
  for (const { content, ...header } of entries) tar.entry(header, content ?? '');
  tar.finalize();
  await written;
  return await pushedFile(path, 'archive');
}

test.each<[string, () => Promise<ArtifactRef>]>([
  [
    '../',
    () =>
      packedOf([
        { name: 'fine', content: 'x' },
        { name: '../escaped', content: 'x' },
      ]),
  ],
  ['an absolute path', () => packedOf([{ name: '/tmp/escaped', content: 'x' }])],
  ['an absolute link', () => packedOf([{ name: 'link', type: 'symlink', linkname: '/etc' }])],
  ['a link that leads out', () => packedOf([{ name: 'a/link', type: 'symlink', linkname: '../../..' }])],
  [
    'a file through a link',
    () =>
      packedOf([
        { name: 'a', type: 'symlink', linkname: '.' },
        { name: 'a/b', content: 'x' },
      ]),
  ],
  ['a hard link out', () => packedOf([{ name: 'link', type: 'link', linkname: '/etc/passwd' }])],
  ['a device', () => packedOf([{ name: 'device', type: 'character-device' }])],
  ['a bomb', () => packedOf([{ name: 'zeros', content: Buffer.alloc(40 << 20) }])],
  [
    'no archive',
    () => {
      writeFileSync(join(one.dir, 'bad'), 'not an archive');
      return pushedFile(join(one.dir, 'bad'), 'archive');
    },
  ],
  ['a blob that is not there', async () => ({ ...(await good('x')), blob: `sha256:${'0'.repeat(64)}` })],
])('%s', async (_, bad) => {
  expect(await one.once([archive(await good('one')), file('/etc/after', '1')], credentials)).toMatchObject({ status: 0, err: '' });
  const before = one.tree();
  const ran = await one.once([archive(await bad()), file('/etc/after', '2'), file('/etc/web', 'w', { module: 'web' })], credentials);
  expect(ran.status).toBe(1);
  expect(`${ran.out}${ran.err}`).toContain('archive/opt/app');
  // Not even the link was touched; the rest of the module waits, another module does not.
  const { 'etc/web': web, ...rest } = one.tree();
  expect(web).toBe('644 w');
  expect(rest).toEqual(before);
  expect(one.text('opt/app/inner/version')).toBe('one');
  expect(existsSync('/tmp/escaped') || existsSync(join(one.root, 'escaped')) || existsSync(join(one.root, 'opt/escaped'))).toBe(false);
});

test('a new version takes the place whole, what changed is put right, and at the end nothing of it is left', async () => {
  one.put('opt/other', 'not ours');
  const before = one.tree();
  await one.once([archive(await good('one'))], credentials);
  expect(one.text('opt/app/inner/version')).toBe('one');
  await one.once([archive(await good('two'))], credentials);
  expect(one.text('opt/app/inner/version')).toBe('two');
  writeFileSync(join(one.root, 'opt/app/inner/version'), 'xxx');
  expect(await one.host(...credentials, '--once')).toMatchObject({ err: '' });
  expect(one.text('opt/app/inner/version')).toBe('two');
  await one.once([], credentials);
  expect(one.tree()).toEqual(before);
});

test('a directory that was there is set aside for an archive, and put back', async () => {
  one.put('opt/app/by-hand', 'written by hand');
  const before = one.tree();
  await one.once([archive(await good('one'))], credentials);
  expect(one.text('opt/app/inner/version')).toBe('one');
  expect(existsSync(join(one.root, 'opt/app/by-hand'))).toBe(false);
  await one.once([], credentials);
  expect(one.tree()).toEqual(before);
});

test('a file comes from an artifact, whole', async () => {
  writeFileSync(join(one.dir, 'blob'), 'content of the artifact');
  const artifact = await pushedFile(join(one.dir, 'blob'), 'file');
  const resource: DeclaredResource = { module: 'app', id: 'file/etc/app', shape: 'file', spec: { path: '/etc/app', mode: '0755', artifact } };
  expect(await one.once([resource], credentials)).toMatchObject({ status: 0, err: '' });
  expect(one.tree()).toMatchObject({ 'etc/app': '755 content of the artifact' });
});

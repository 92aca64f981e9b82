import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { archive, file, type Machine, machine } from './machine';

let m: Machine;

beforeEach(() => {
  m = machine();
});
afterEach(() => m.remove());

const failuresOf = ({ modules }: Awaited<ReturnType<Machine['apply']>>) => modules.flatMap(({ failures }) => failures);

async function tarball(entries: ReadonlyArray<Partial<Header> & { readonly name: string }>, size = 0): Promise<Buffer> {
  const tar = pack();
  for (const entry of entries) {
    if (entry.type === undefined) tar.entry(entry, 'x'.repeat(size));
    else tar.entry(entry);
  }
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}

describe('a tree', () => {
  test('is swapped whole, old files gone with it, and only the newest is kept', async () => {
    await m.apply([archive('/opt/app', await m.archive({ 'bin/run': 'v1', 'only-in-1': '1' }))]);
    expect(m.read('opt/app/bin/run')).toBe('v1');
    await m.apply([archive('/opt/app', await m.archive({ 'bin/run': 'v2' }))]);
    expect(m.read('opt/app/bin/run')).toBe('v2');
    expect(existsSync(join(m.root, 'opt/app/only-in-1'))).toBe(false);
    expect(readdirSync(join(m.state, 'trees')).filter((name) => !name.endsWith('.json'))).toHaveLength(1);
  });

  test('that was changed is unpacked anew, what a program wrote beside is let be', async () => {
    const declared = [archive('/opt/app', await m.archive({ 'a.py': 'a', 'b/c': 'c' }))];
    await m.apply(declared);
    m.plant('opt/app/__pycache__/a.pyc', 'compiled');
    expect((await m.apply(declared)).hasChanged).toBe(false);
    for (const meddle of [
      () => m.plant('opt/app/a.py', 'A'),
      () => m.plant('opt/app/a.py', 'a', 0o600),
      () => rmSync(join(m.root, 'opt/app/b'), { recursive: true }),
      () => rmSync(join(m.root, 'opt/app')),
    ]) {
      meddle();
      const pass = await m.apply(declared);
      expect(pass.modules[0]?.changes).toEqual([{ resource: 'archive/opt/app', cause: 'corrective' }]);
      expect([m.read('opt/app/a.py'), m.read('opt/app/b/c')]).toEqual(['a', 'c']);
    }
  });

  test('may hold a file of its own module, which comes back after each swap', async () => {
    const conf = file('/opt/app/conf', 'mine');
    await m.apply([archive('/opt/app', await m.archive({ run: 'v1' })), conf]);
    await m.apply([archive('/opt/app', await m.archive({ run: 'v2' })), conf]);
    expect([m.read('opt/app/run'), m.read('opt/app/conf')]).toEqual(['v2', 'mine']);
  });
});

describe('an artifact that is a file', () => {
  test('is laid down byte by byte, references in it left alone', async () => {
    const content = Buffer.from('${root} \0 \xff', 'latin1');
    expect((await m.apply([file('/bin/tool', m.blob(content), { mode: '0755' })])).hasFailed).toBe(false);
    expect(readFileSync(join(m.root, 'bin/tool'))).toEqual(content);
  });

  test('that is not whole on this machine and cannot be fetched fails, and the old content stays', async () => {
    await m.apply([file('/bin/tool', m.blob(Buffer.from('one')))]);
    const other = m.blob(Buffer.from('two'));
    writeFileSync(join(m.state, 'blobs', other.blob.replace(':', '-')), 'tw');
    expect(failuresOf(await m.apply([file('/bin/tool', other)]))[0]?.message).toContain('without a link it cannot be fetched');
    expect(m.read('bin/tool')).toBe('one');
  });
});

describe('an archive that should not be unpacked is refused before anything is written', () => {
  test.each<[string, () => Promise<Buffer>]>([
    ['a path upwards', () => tarball([{ name: '../evil' }], 4)],
    ['an absolute path', () => tarball([{ name: '/evil' }], 4)],
    ['a link out', () => tarball([{ name: 'l', type: 'symlink', linkname: '../../evil' }])],
    ['a hard link out', () => tarball([{ name: 'l', type: 'link', linkname: '../../../etc/passwd' }])],
    ['a device', () => tarball([{ name: 'd', type: 'character-device' }])],
    ['a bomb', () => tarball([{ name: 'zeros' }], 64 << 20)],
    ['no archive', async () => Buffer.from('<html>')],
  ])('%s', async (_what, make) => {
    await m.apply([archive('/opt/app', await m.archive({ run: 'v1' }))]);
    const before = [readlinkSync(join(m.root, 'opt/app')), readdirSync(join(m.state, 'trees')).sort()];
    const content = await make();
    const pass = await m.apply([archive('/opt/app', m.blob(content)), file('/after', 'never')]);
    expect(failuresOf(pass)).toEqual([{ resource: 'archive/opt/app', message: expect.any(String) }]);
    expect([readlinkSync(join(m.root, 'opt/app')), readdirSync(join(m.state, 'trees')).sort()]).toEqual(before);
    expect(m.read('opt/app/run')).toBe('v1');
    expect(existsSync(join(m.root, 'after'))).toBe(false);
  });
});

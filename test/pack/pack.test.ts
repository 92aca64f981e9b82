import { createHash, randomBytes } from 'node:crypto';
import {
  createWriteStream,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import fc from 'fast-check';
import { pack, type Header as TarHeader } from 'tar-stream';
import { ArchiveRefused, defaultLimits, inspectArchive, packDirectory, unpackArchive } from '../../src/pack';
import { temporaryFolder } from '../support/repositories';

const folder = temporaryFolder();
afterAll(() => folder.remove());
let unique = 0;
const fresh = (): string => {
  unique += 1;
  return path.join(folder.dir, `p${unique}`);
};

type Header = Partial<TarHeader> & { readonly name: string };
type Tree = ReadonlyArray<{ readonly name: string; readonly text: string; readonly isExecutable: boolean }>;

function plant(tree: Tree, order: (names: Tree) => Tree = (names) => names): string {
  const dir = fresh();
  mkdirSync(dir);
  for (const { name, text, isExecutable } of order(tree)) {
    const file = path.join(dir, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: isExecutable ? 0o700 : 0o600 });
    utimesSync(file, Math.random() * 1e9, Math.random() * 1e9);
  }
  return dir;
}

function list(dir: string, below = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(path.join(dir, below))) {
    const inner = path.join(below, name);
    const file = path.join(dir, inner);
    const stat = lstatSync(file);
    if (stat.isDirectory()) Object.assign(found, list(dir, inner));
    else found[inner] = stat.isSymbolicLink() ? `→ ${readlinkSync(file)}` : `${(stat.mode & 0o777).toString(8)} ${readFileSync(file, 'utf8')}`;
  }
  return found;
}

async function packed(dir: string): Promise<string> {
  const file = `${fresh()}.tgz`;
  await packDirectory(dir, file);
  return file;
}

const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

async function archive(entries: ReadonlyArray<Header & { readonly text?: string }>): Promise<string> {
  const file = `${fresh()}.tgz`;
  const tar = pack();
  for (const { text, ...header } of entries) tar.entry({ ...header, mode: 0o644 }, text ?? '');
  tar.finalize();
  await pipeline(tar, createGzip(), createWriteStream(file));
  return file;
}

const arbTree: fc.Arbitrary<Tree> = fc.uniqueArray(
  fc.record({
    name: fc
      .tuple(
        fc.constantFrom('', 'bin/', 'lib/deep/', 'ünï cödé/'),
        fc.stringMatching(/^[a-z0-9ß .-]{1,12}$/).filter((name) => !/^\.+$/.test(name)),
      )
      .map((parts) => parts.join('')),
    text: fc.string(),
    isExecutable: fc.boolean(),
  }),
  { selector: (entry) => entry.name, minLength: 1, maxLength: 6 },
);

describe('packing', () => {
  test('the same tree gives the same bytes, whatever its folder, its times and the order it was made in', () =>
    fc.assert(
      fc.asyncProperty(arbTree, async (tree) => {
        const one = await packed(plant(tree));
        const other = await packed(plant(tree, (names) => [...names].reverse()));
        expect(digest(other)).toBe(digest(one));
      }),
      { numRuns: 30 },
    ));

  test('what is packed is what is unpacked, with modes 0644 and 0755', () =>
    fc.assert(
      fc.asyncProperty(arbTree, async (tree) => {
        const out = fresh();
        await unpackArchive(await packed(plant(tree)), out);
        expect(list(out)).toEqual(
          Object.fromEntries(tree.map((entry) => [path.normalize(entry.name), `${entry.isExecutable ? '755' : '644'} ${entry.text}`])),
        );
      }),
      { numRuns: 30 },
    ));

  test('another content gives other bytes', async () => {
    const one = await packed(plant([{ name: 'a', text: '1', isExecutable: false }]));
    expect(digest(await packed(plant([{ name: 'a', text: '2', isExecutable: false }])))).not.toBe(digest(one));
  });

  test('a link inside the tree and a loop are kept; a link out of it is refused', async () => {
    const dir = plant([{ name: 'real', text: 'x', isExecutable: false }]);
    symlinkSync('real', path.join(dir, 'inside'));
    symlinkSync('loop-b', path.join(dir, 'loop-a'));
    symlinkSync('loop-a', path.join(dir, 'loop-b'));
    const out = fresh();
    await unpackArchive(await packed(dir), out);
    expect(list(out)).toMatchObject({ inside: '→ real', 'loop-a': '→ loop-b' });
    symlinkSync('../elsewhere', path.join(dir, 'out'));
    await expect(packed(dir)).rejects.toThrow('out is a link out of the tree, to ../elsewhere');
  });

  test('a name that is no UTF-8 is refused by name', async () => {
    const dir = plant([]);
    writeFileSync(Buffer.concat([Buffer.from(`${dir}/bad`), Buffer.from([0xff])]), '');
    await expect(packed(dir)).rejects.toThrow(/no UTF-8/);
    const linked = plant([]);
    symlinkSync(Buffer.from([0xff]), path.join(linked, 'link'));
    await expect(packed(linked)).rejects.toThrow('link is a link to a name that is no UTF-8');
  });

  test('a directory named after what lies in it is the same directory', async () => {
    const out = fresh();
    await unpackArchive(
      await archive([
        { name: 'd/a', text: 'x' },
        { name: 'd/', type: 'directory' },
      ]),
      out,
    );
    expect(list(out)).toEqual({ 'd/a': '644 x' });
  });

  test('a file of several blocks comes through', async () => {
    const dir = plant([]);
    const content = randomBytes(3_000_001);
    writeFileSync(path.join(dir, 'big'), content);
    const out = fresh();
    await unpackArchive(await packed(dir), out);
    expect(readFileSync(path.join(out, 'big')).equals(content)).toBe(true);
  });
});

describe('an archive is refused before anything is written', () => {
  test.each<[string, ReadonlyArray<Header & { text?: string }>, RegExp]>([
    ['a path upwards', [{ name: '../evil', text: 'x' }], /not inside/],
    ['a path upwards in the middle', [{ name: 'a/../../evil', text: 'x' }], /not inside/],
    ['an absolute path', [{ name: '/etc/evil', text: 'x' }], /not inside/],
    ['an absolute link', [{ name: 'l', type: 'symlink', linkname: '/etc/passwd' }], /absolute link/],
    ['a link out', [{ name: 'd/l', type: 'symlink', linkname: '../../etc' }], /leads out/],
    [
      'a link out by way of another link',
      [
        { name: 's', type: 'symlink', linkname: '.' },
        { name: 't', type: 'symlink', linkname: 's/..' },
      ],
      /leads out/,
    ],
    [
      'a file below a link',
      [
        { name: 'l', type: 'symlink', linkname: 'd' },
        { name: 'l/evil', text: 'x' },
      ],
      /lies below l/,
    ],
    [
      'a file below a file',
      [
        { name: 'f', text: 'x' },
        { name: 'f/evil', text: 'x' },
      ],
      /lies below f/,
    ],
    [
      'a link in the place of a directory that something already lies in',
      [
        { name: 'd/a', text: 'x' },
        { name: 'd', type: 'symlink', linkname: 'e' },
      ],
      /d is there twice/,
    ],
    ['a name that is too long', [{ name: 'n'.repeat(256), text: 'x' }], /too long/],
    ['a path that is too long', [{ name: 'n/'.repeat(2_100), text: 'x' }], /too long/],
    ['a name that is no UTF-8', [{ name: 'bad\ufffd', text: 'x' }], /no UTF-8/],
    ['a hard link out', [{ name: 'h', type: 'link', linkname: '../../etc/passwd' }], /hard link/],
    ['a hard link to an absolute path', [{ name: 'h', type: 'link', linkname: '/etc/passwd' }], /hard link/],
    [
      'a hard link to a link',
      [
        { name: 'l', type: 'symlink', linkname: 'x' },
        { name: 'h', type: 'link', linkname: 'l' },
      ],
      /hard link/,
    ],
    ['a device', [{ name: 'null', type: 'character-device' }], /never unpacked/],
    ['a pipe', [{ name: 'pipe', type: 'fifo' }], /never unpacked/],
    [
      'the same name twice',
      [
        { name: 'a', text: '1' },
        { name: './a', text: '2' },
      ],
      /twice/,
    ],
  ])('%s', async (_what, entries, reason) => {
    const file = await archive([{ name: 'first', text: 'harmless' }, ...entries]);
    const out = fresh();
    const refused = unpackArchive(file, out);
    await expect(refused).rejects.toThrow(reason);
    await expect(refused).rejects.toBeInstanceOf(ArchiveRefused);
    expect(existsSync(out)).toBe(false);
  });

  test('a bomb, by its size, its ratio and its number of entries', async () => {
    const file = await archive([{ name: 'zeros', text: '\0'.repeat(4_000_000) }]);
    await expect(inspectArchive(file, { ...defaultLimits, bytes: 1_000_000 })).rejects.toThrow('unpacks to more than 1000000 bytes');
    await expect(inspectArchive(file, { ...defaultLimits, freeBytes: 1_000_000 })).rejects.toThrow('more than 200 times its size');
    const many = await archive(Array.from({ length: 20 }, (_, n) => ({ name: `${n}`, text: '' })));
    await expect(inspectArchive(many, { ...defaultLimits, entries: 10 })).rejects.toThrow('more than 10 entries');
  });

  test('bytes that are no archive', async () => {
    const file = fresh();
    writeFileSync(file, 'not gzip');
    await expect(unpackArchive(file, fresh())).rejects.toBeInstanceOf(ArchiveRefused);
  });

  test('a truncated archive', async () => {
    const whole = await archive([{ name: 'a', text: randomBytes(100_000).toString('hex') }]);
    const cut = fresh();
    writeFileSync(cut, readFileSync(whole).subarray(0, 50_000));
    await expect(unpackArchive(cut, fresh())).rejects.toBeInstanceOf(ArchiveRefused);
  });

  test('a hard link to an earlier file is unpacked as one', async () => {
    const out = fresh();
    await unpackArchive(
      await archive([
        { name: 'a', text: 'x' },
        { name: 'b', type: 'link', linkname: 'a' },
      ]),
      out,
    );
    expect(list(out)).toEqual({ a: '644 x', b: '644 x' });
  });
});

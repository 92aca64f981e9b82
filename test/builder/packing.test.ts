import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import { packArtifact } from '../../src/builder/packing';
import { unpackArchive, unpackWheel } from '../../src/pack';
import type { ArtifactKind } from '../../src/schema/primitives';
import { removeScratch, scratch } from './scratch';

afterAll(() => removeScratch());

type Files = Record<string, string>;

function plant(files: Files): string {
  const root = join(scratch(), 'tree');
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  return root;
}

/** What is packed of `directory`, when git tracks `tracked` of the tree. */
async function pack(kind: Exclude<ArtifactKind, 'file'>, files: Files, more: { directory?: string; tracked?: string[]; outputs?: string[] } = {}) {
  const root = plant(files);
  const out = join(scratch(), 'out');
  const outputs = [more.directory ?? '.', ...(more.outputs ?? [])].map((one) => join(root, one));
  const tracked = more.tracked ?? Object.keys(files);
  const wrong = await packArtifact(kind, join(root, more.directory ?? '.'), { root, tracked, outputs }, out);
  if (wrong !== null) return { wrong, names: [], bytes: Buffer.alloc(0), out };
  const names = execFileSync('tar', ['-tzf', out], { encoding: 'utf8' }).trim().split('\n');
  return { wrong, names, bytes: readFileSync(out), out };
}

describe('a Go module is packed', () => {
  const module = {
    'go.mod': 'module example.com/core\n',
    'core.go': 'package core\n',
    'core_test.go': 'package core\n',
    'README.md': 'hello',
    'notes.txt': '',
    'in/asm.s': '',
  };

  test('as others compile it: no test, no vendor, no nested module, no prose', async () => {
    const { names } = await pack('go', {
      ...module,
      'vendor/x/x.go': 'package x\n',
      'tool/go.mod': 'module tool\n',
      'tool/main.go': 'package main\n',
    });
    expect(names).toEqual(['core.go', 'go.mod', 'in/asm.s']);
  });

  test('the same whatever its README says', async () => {
    const [one, other] = [await pack('go', module), await pack('go', { ...module, 'README.md': 'hello again' })];
    expect(one.bytes.equals(other.bytes)).toBe(true);
  });

  test('with what its code embeds', async () => {
    const { names } = await pack('go', {
      ...module,
      'web/web.go': 'package web\n\n//go:embed static\nvar files embed.FS\n',
      'web/static/a.txt': 'a',
    });
    expect(names).toEqual(['core.go', 'go.mod', 'in/asm.s', 'web/static/a.txt', 'web/web.go']);
  });

  test('without what git ignores or another artifact is, but with what was generated', async () => {
    const files = { ...module, '.gitignore': 'cache/\n', 'cache/c.go': 'package c\n', 'out/o.go': 'package o\n', 'gen.go': 'package core\n' };
    const { names } = await pack('go', files, { tracked: Object.keys(module), outputs: ['out'] });
    expect(names).toEqual(['core.go', 'gen.go', 'go.mod', 'in/asm.s']);
  });

  test('whole where all of it was generated into an ignored directory', async () => {
    const files = { '.gitignore': 'gen/\n', 'gen/go.mod': 'module example.com/gen\n', 'gen/a.go': 'package gen\n' };
    expect((await pack('go', files, { directory: 'gen', tracked: ['.gitignore'] })).names).toEqual(['a.go', 'go.mod']);
  });

  test('or not at all without a go.mod', async () => {
    expect((await pack('go', { 'a.go': 'package a\n' })).wrong).toBe('it has no go.mod');
  });
});

describe('an npm package is packed', () => {
  test('with the files that npm would publish, below package/, and no script of it runs', async () => {
    const packageJson = JSON.stringify({ name: '@a/b', version: '1.0.0', files: ['dist'], bin: 'dist/cli.js', scripts: { prepack: 'touch ran' } });
    const { names, out } = await pack('npm', {
      ...{ 'package.json': packageJson, 'dist/index.js': '', 'dist/cli.js': '', 'src/index.ts': '', 'README.md': '', LICENSE: '' },
      ...{ '.gitignore': 'dist\n', 'node_modules/x/index.js': '' },
    });
    expect(names).toEqual(['package/LICENSE', 'package/dist/cli.js', 'package/dist/index.js', 'package/package.json']);
    expect(existsSync(join(dirname(out), 'ran'))).toBe(false);
  });

  test('or not at all with a package.json that npm could not read', async () => {
    expect((await pack('npm', { 'package.json': '{' })).wrong).toMatch(/^its package.json cannot be packed/);
  });
});

describe('a crate is packed', () => {
  const crate = {
    'Cargo.toml': '[package]\nname = "core"\nversion = "0.1.0"\n',
    'src/lib.rs': '',
    'Cargo.lock': '',
    'README.md': '',
    'target/x': '',
  };

  test('without its build results, its lock and its prose', async () => {
    expect((await pack('crate', crate)).names).toEqual(['Cargo.toml', 'src/lib.rs']);
  });

  test('with the prose that its code includes', async () => {
    const { names } = await pack('crate', { ...crate, 'src/lib.rs': '#![doc = include_str!("../README.md")]' });
    expect(names).toEqual(['Cargo.toml', 'README.md', 'src/lib.rs']);
  });

  test('or not at all where it needs the workspace around it', async () => {
    const inheriting = '[package]\nname = "core"\nversion.workspace = true\n[dependencies]\nserde = { workspace = true }\n';
    expect((await pack('crate', { ...crate, 'Cargo.toml': inheriting })).wrong).toBe(
      'its Cargo.toml takes version from a workspace, which others do not have: write it out there',
    );
  });

  test('or not at all where it depends on what lies beside it', async () => {
    const beside = '[package]\nname = "core"\nversion = "0.1.0"\n[target.x.dependencies]\nbase = { path = "../base" }\n';
    expect((await pack('crate', { ...crate, 'Cargo.toml': beside })).wrong).toMatch(/^its Cargo.toml depends on ..\/base, which others do not have/);
  });
});

describe('a wheel is packed', () => {
  const files: Files = {
    'core/__init__.py': 'x = 1\n',
    'core-1.0.dist-info/METADATA': 'Name: core\n',
    'core-1.0.dist-info/RECORD': 'stale,,\n',
    'core-1.0.data/purelib/extra.py': '',
    'core-1.0.data/scripts/run': '#!python\n',
  };

  async function wheel(names: string[], mtime: Date): Promise<string> {
    const out = join(scratch(), 'a.whl');
    const zip = new ZipFile();
    for (const name of names) zip.addBuffer(Buffer.from(files[name] ?? ''), name, { mtime });
    zip.end();
    await pipeline(zip.outputStream, createWriteStream(out));
    utimesSync(out, mtime, mtime);
    return out;
  }

  async function normalised(file: string): Promise<string> {
    const out = join(scratch(), 'out.whl');
    expect(await packArtifact('wheel', file, { root: dirname(file), tracked: [], outputs: [] }, out)).toBeNull();
    return out;
  }

  test('the same in whatever order and time it was made, with a RECORD of just that', async () => {
    const one = await normalised(await wheel(Object.keys(files), new Date('2020-01-01')));
    const other = await normalised(await wheel(Object.keys(files).reverse(), new Date('2024-06-01')));
    expect(readFileSync(one).equals(readFileSync(other))).toBe(true);
    const place = join(scratch(), 'site');
    await unpackWheel(one, place);
    expect(readFileSync(join(place, 'core/__init__.py'), 'utf8')).toBe('x = 1\n');
    expect(existsSync(join(place, 'extra.py'))).toBe(true);
    expect(readFileSync(join(place, 'core-1.0.dist-info/RECORD'), 'utf8').split('\n')).toContain(
      `core/__init__.py,sha256=${createHash('sha256').update('x = 1\n').digest('base64url')},6`,
    );
  });

  test('and two that hold the same file are never laid over one another', async () => {
    const file = await normalised(await wheel(Object.keys(files), new Date()));
    const place = join(scratch(), 'site');
    await unpackWheel(file, place);
    await expect(unpackWheel(file, place)).rejects.toThrow('and so does another wheel');
  });

  test('or not at all when it is none', async () => {
    const root = plant({ 'a.whl': 'no zip' });
    const wrong = await packArtifact('wheel', join(root, 'a.whl'), { root, tracked: [], outputs: [] }, join(scratch(), 'out.whl'));
    expect(wrong).toMatch(/^is no zip archive/);
  });
});

test('what is packed unpacks', async () => {
  const { out } = await pack('go', { 'go.mod': 'module a\n', 'deep/down/a.go': 'package a\n' });
  const place = join(scratch(), 'unpacked');
  await unpackArchive(out, place);
  expect(readFileSync(join(place, 'deep/down/a.go'), 'utf8')).toBe('package a\n');
});

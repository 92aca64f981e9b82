import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deriveGraph } from '../../src/imports';
import { assembled, limits } from '../../src/imports/findings';
import { runTool } from '../../src/imports/run';
import { sourceTree } from '../../src/imports/tree';
import type { FoundImport, LanguageFindings } from '../../src/imports/types';
import { derive, deriveIn, type Files, importsOf, manifestWith, programs, removeRepositories, repository } from './repository';

afterAll(removeRepositories);

const { signal } = new AbortController();

describe('the files of a commit', () => {
  test('are read whatever they are called', async () => {
    const names = [
      'with space.go',
      'ünï/cödé.go',
      'q"uote\'s.go',
      'back\\slash.go',
      '-dash.go',
      'new\nline.go',
      'tab\there.go',
      'latin1:caf\xe9.go',
      'latin1:\xff\xfe.go',
    ];
    const files = Object.fromEntries(names.map((name, n) => [name, `package p\n\nimport "example.com/n${n}"\n`]));
    const found = await derive({ ...files, 'py thon é.py': 'import spaced\n', 'latin1:p\xe9.py': 'import latin\n' });
    expect(importsOf(found)).toEqual([
      'example.com/n0 with space.go:3',
      'example.com/n1 ünï/cödé.go:3',
      'example.com/n2 q"uote\'s.go:3',
      'example.com/n3 back\\slash.go:3',
      'example.com/n4 -dash.go:3',
      'example.com/n5 new\nline.go:3',
      'example.com/n6 tab\there.go:3',
      'example.com/n7 caf\\xe9.go:3',
      'example.com/n8 \\xff\\xfe.go:3',
      'latin p\\xe9.py:1',
      'spaced py thon é.py:1',
    ]);
    expect(found.unknown).toEqual([]);
  });

  test('are those that git tracks: no links, no submodules, nothing beside', async () => {
    const root = repository({
      'a.go': 'package a\n\nimport "example.com/a"\n',
      'link.go': { link: '/etc/passwd' },
      loop: { link: '.' },
      'dir/up': { link: '..' },
      'gone.go': { link: 'nowhere' },
      'fifo.txt': '',
    });
    writeFileSync(join(root, 'untracked.go'), 'package a\n\nimport "example.com/untracked"\n');
    const sub = repository({ 'b.go': 'package b\n\nimport "example.com/submodule"\n' });
    const git = (at: string, ...args: string[]): void =>
      void execFileSync('git', ['-C', at, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', '-c', 'protocol.file.allow=always', ...args], {
        timeout: 20_000,
        stdio: 'pipe',
      });
    git(sub, 'commit', '--quiet', '--message', 'one');
    git(root, 'submodule', '--quiet', 'add', sub, 'sub');
    const tree = await sourceTree(root, signal);
    expect(tree.files.map(({ path }) => path)).toEqual(['.gitmodules', 'a.go', 'fifo.txt']);
    expect(importsOf(await deriveIn(root))).toEqual(['example.com/a a.go:3']);
  });

  test('that turned into links, pipes or nothing are not followed and not waited for', async () => {
    const root = repository({
      'a.py': 'import one\n',
      'b.py': 'import two\n',
      'c.go': 'package c\n',
      'd.go': 'package d\n',
      'e.py': 'import three\n',
    });
    for (const file of ['a.py', 'b.py', 'c.go', 'd.go']) rmSync(join(root, file));
    execFileSync('mkfifo', [join(root, 'a.py'), join(root, 'c.go')]);
    symlinkSync('e.py', join(root, 'b.py'));
    mkdirSync(join(root, 'd.go'));
    const found = await deriveIn(root);
    expect(importsOf(found)).toEqual(['three e.py:1']);
    expect(found.unknown.map(({ kind, file }) => [kind, file])).toEqual(['a.py', 'b.py', 'c.go', 'd.go'].map((file) => ['unparsed', file]));
    const tree = await sourceTree(root, signal);
    expect(await Promise.all(tree.files.map((file) => tree.read(file, 100)))).toEqual([null, null, null, null, Buffer.from('import three\n')]);
    expect(await Promise.all(tree.files.map((file) => tree.read(file, 5)))).toEqual([null, null, null, null, null]);
  });

  test('carried along from others are not the code of the module, but a folder called target may be', async () => {
    const source = (name: string): string => `package p\n\nimport "example.com/${name}"\n`;
    const found = await derive({
      'vendor/a.go': source('vendor'),
      'x/node_modules/m/a.go': source('node'),
      '.venv/lib/a.go': source('venv'),
      'py/site-packages/a.py': 'import site_packages\n',
      'rust/Cargo.toml': '[package]\nname = "r"\nversion = "0.1.0"\n',
      'rust/src/lib.rs': '',
      'rust/target/a.go': source('cargo'),
      'target/a.go': source('target'),
      'vendored/a.go': source('vendored'),
    });
    expect(importsOf(found)).toEqual(['example.com/target target/a.go:3', 'example.com/vendored vendored/a.go:3']);
  });
});

describe('what was found', () => {
  test('is the same however often and in whatever state of the cache it is asked', async () => {
    const files: Files = { 'go.mod': 'module example.com/a\n' };
    for (let n = 0; n < 60; n += 1) {
      files[`p${n % 7}/f${n}.go`] = `package p\n\nimport "example.com/x${n % 11}"\nimport "example.com/y"\n`;
      files[`q${n % 5}/f${n}.py`] = `import x${n % 13}, y\n`;
    }
    const root = repository(files);
    const first = await deriveIn(root, { a: { go: '.' } });
    expect(await deriveIn(root, { a: { go: '.' } })).toEqual(first);
    expect(await derive(Object.fromEntries(Object.entries(files).reverse()), { a: { go: '.' } })).toEqual(first);
    expect(first.imports.filter(({ name }) => name.endsWith('y'))).toMatchObject([{ file: 'p0/f0.go' }, { file: 'q0/f0.py' }]);
  });

  test('is cut at what a message holds, and said to be unknown then', () => {
    const imports = Array.from(
      { length: 10 },
      (_, n): FoundImport => ({ name: `n${n}`, candidates: [`n${n}`], test: false, file: 'a.go', line: n + 1 }),
    );
    const found = new Map<'go', LanguageFindings>([['go', { declared: [], imports, unknown: [], notes: ['one', 'two', 'three'] }]]);
    const none = { exports: [], notes: [] };
    const cut = assembled(found, none, { ...limits, names: 4, notes: 2 });
    expect(cut.imports.map(({ name }) => name)).toEqual(['n0', 'n1', 'n2', 'n3']);
    expect(cut.unknown).toMatchObject([{ kind: 'unparsed', file: '.' }]);
    expect(cut.notes).toEqual(['the code imports 10 names, more than an inspection can say: the first 4 are looked at', 'and 3 notes more']);
    const few = assembled(found, none, { ...limits, bytes: 400 });
    expect(few.imports).toEqual(assembled(found, none).imports.slice(0, few.imports.length));
    expect(few.imports.length).toBeGreaterThan(1);
    expect(JSON.stringify(few.imports).length).toBeLessThanOrEqual(401);
    const exports = ['a', 'b', 'c'].map((name) => ({ language: 'go' as const, name, artifact: 'one', file: 'go.mod', line: 1 }));
    const exported = assembled(new Map(), { exports, notes: [] }, { ...limits, names: 2 });
    expect(exported.exports.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(exported.unknown).toMatchObject([{ kind: 'unparsed', file: '.' }]);
    expect(assembled(found, none).unknown).toEqual([]);
  });

  test('leaves out what no package is called, and holds nothing that a store refuses', () => {
    const odd = (name: string): FoundImport => ({ name, candidates: [name], test: false, file: 'a.go', line: 1 });
    const findings: LanguageFindings = {
      declared: [],
      imports: [odd('ok'), odd(''), odd('nul\0'), odd('x'.repeat(513)), odd('half \ud800'), { ...odd('y'.repeat(513)), candidates: ['y'] }],
      unknown: [{ kind: 'computed', file: 'a', line: 1, reason: `a\nb\0c \ud83d${'x'.repeat(600)}` }],
      notes: [`${'x'.repeat(499)}\u{1f600}`, 'twice', 'twice'],
    };
    const { imports, unknown, notes } = assembled(new Map([['go', findings]]), { exports: [], notes: [] });
    expect(imports.map(({ name }) => name)).toEqual(['ok']);
    expect(unknown[0]?.reason).toMatch(/^a b c {2}x+$/);
    expect(unknown[0]?.reason.length).toBeLessThanOrEqual(500);
    expect(notes.slice(0, 2)).toEqual(['x'.repeat(499), 'twice']);
    expect(notes).toHaveLength(3);
  });
});

describe('a builder', () => {
  test('that is told to stop reads no further', async () => {
    const root = repository({ 'a.go': 'package a\n' });
    await expect(deriveGraph(root, manifestWith({}), { signal: AbortSignal.abort(), cache: programs })).rejects.toMatchObject({
      kind: 'environment',
    });
    const tool = { command: 'touch', args: ['begun'], cwd: root, env: { PATH: process.env.PATH ?? '' }, timeoutMs: 20_000 };
    await expect(runTool({ ...tool, signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: 'environment' });
    expect(existsSync(join(root, 'begun'))).toBe(false);
  });

  test('ends a tool that takes too long, says too much or is to stop', async () => {
    const tool = { args: [], cwd: '/', env: { PATH: process.env.PATH ?? '' }, timeoutMs: 60_000, signal };
    expect(await runTool({ ...tool, command: 'sleep', args: ['600'], timeoutMs: 50 })).toMatchObject({ status: null, endedBy: 'timeout' });
    expect(await runTool({ ...tool, command: 'yes', mostBytes: 1_000 })).toMatchObject({ status: null, endedBy: 'output' });
    const stopped = new AbortController();
    const running = runTool({ ...tool, command: 'sleep', args: ['600'], signal: stopped.signal });
    stopped.abort();
    await expect(running).rejects.toMatchObject({ kind: 'environment' });
    expect(await runTool({ ...tool, command: 'tally-no-such-tool' })).toBeNull();
    expect(await runTool({ ...tool, command: 'sh', args: ['-c', 'echo why >&2; exit 3'] })).toMatchObject({
      status: 3,
      endedBy: null,
      stderr: 'why',
    });
  });
});

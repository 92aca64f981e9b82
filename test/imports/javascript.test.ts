import fc from 'fast-check';
import { readJavaScript } from '../../src/imports/javascript';
import { usesOf } from '../../src/imports/parsing/javascript';
import { sourceTree } from '../../src/imports/tree';
import type { LanguageFindings } from '../../src/imports/types';
import { type Files, programs, removeRepositories, repository } from './repository';

afterAll(removeRepositories);

function read(files: Files): Promise<LanguageFindings> {
  return readIn(repository(files));
}

async function readIn(root: string): Promise<LanguageFindings> {
  const { signal } = new AbortController();
  return readJavaScript(await sourceTree(root, signal), { signal, cache: programs });
}

/** The names that the files import, sorted; `~` marks those of tests. */
async function names(files: Files): Promise<string[]> {
  const { imports } = await read(files);
  return [...new Set(imports.map(({ name, test }) => (test ? `~${name}` : name)))].sort();
}

describe('what imports', () => {
  test.each<[string, string, string[]]>([
    ['a.ts', `import 'a'; import b from "b"; import * as c from 'c/deep/er'; import { d } from '@d/e/f';`, ['@d/e', 'a', 'b', 'c']],
    [
      'a.ts',
      `export * from 'a'; export { b } from 'b'; export * as c from 'c'; export type * from 'd'; export type { E } from 'e';`,
      ['a', 'b', 'c', 'd', 'e'],
    ],
    [
      'a.ts',
      `import type { A } from 'a'; import { type B } from 'b'; type C = import('c').C<typeof import("d")>; import e = require('e');`,
      ['a', 'b', 'c', 'd', 'e'],
    ],
    [
      'a.ts',
      `import type f = require('f'); export import g = require('g'); let x: import('h').H; declare const y: typeof import('i');`,
      ['f', 'g', 'h', 'i'],
    ],
    [
      'a.ts',
      `/// <reference types="a" />\n/// <reference path="./b.d.ts" />\n/// <reference lib="es2020" />\nlet x = 1;\n/// <reference types="not" />`,
      ['a'],
    ],
    ['a.ts', `export {}; declare module 'a' { interface B {} }`, ['a']],
    ['a.d.ts', `declare module 'not' { export const b: import('a').A }`, ['a']],
    [
      'a.js',
      `const a = require('a'), b = require.resolve("b"); await_(() => import('c')); x.require('not'); module.require('d')`,
      ['a', 'b', 'c', 'd'],
    ],
    ['a.js', 'const a = require(`a`); import(`b/c`); import(("d")); require(1 ? "e" : `f`); require(g || "h")', ['a', 'b', 'd', 'e', 'f', 'h']],
    ['a.js', 'import(`a/locale/${x}.js`); require("@b/c/" + x + ".json"); require("./" + x); import(`../${x}`)', ['@b/c', 'a']],
    [
      'a.mjs',
      `import { createRequire } from 'node:module'; const load = createRequire(import.meta.url); load('a'); createRequire(x)('b'); import.meta.resolve('c')`,
      ['a', 'b', 'c'],
    ],
    ['a.cjs', `#!/usr/bin/env node\nif (1) return require('a');`, ['a']],
    ['a.js', `return require('a');`, ['a']],
    ['a.js', `// @flow\ntype A = { b: string };\nimport a from 'a';`, ['a']],
    ['a.jsx', `const a = <A b={require('a')}>import 'not' {import('b')}</A>;`, ['a', 'b']],
    ['a.js', `const a = <A/>; import 'a';`, ['a']],
    ['a.tsx', `const f = <T,>(x: T) => <A<T> b="import 'not'">{x}</A>; import 'a';`, ['a']],
    ['a.ts', `import a from 'a';\nexport * from 'b';\nexport type { C, D } from 'c';\nexport const e = Array.from([]);`, ['a', 'b', 'c']],
    ['a.ts', `export {} from 'a'; export type { /* none */ } from 'b'; export /* */ { } from 'c'; export {};`, ['a', 'b', 'c']],
    ['a.mts', `import a, { type B } from 'a' with { type: 'json' };`, ['a']],
    ['a.cts', `import a = require('a'); export = a;`, ['a']],
    ['a.ts', '\uFEFFimport "a"', ['a']],
    ['a.js', 'import "a/b?raw"; import "@c/d.js/e.css"; import "f.js"', ['@c/d.js', 'a', 'f.js']],
  ])('%s: %s', async (file, source, expected) => {
    expect(await names({ [file]: source })).toEqual(expected);
  });

  test.each<[string, string]>([
    ['a comment', `// import 'x'\n/* import 'x'; require('x') */ /** @type {import('x').X} */`],
    ['a string', `const a = "import 'x'", b = 'require("x")';`],
    ['a string after ${}', 'const a = `${b} import "x"; ${"require(\'x\')"}`; const c = "${} import \'x\'";'],
    ['a template', 'const a = `\nimport "x";\n${`import "x"`}\n`;'],
    ['a regular expression', `const a = /import "x"/, b = a / 1; /require('x')/.test(c)`],
    ['text of JSX', `const a = <p>import "x"; require('x') // import 'x'</p>;`],
    ['a property of that name', `a.require('x'); a.import; ({ require: 1, import: 2 }); class A { require(x) {} import() {} }`],
    ['what Node has', `import 'fs'; import 'node:fs/promises'; import 'node:sqlite'; require('path'); import 'fs/promises'`],
    ['a URL', `import 'https://x/x.js'; import 'data:text/javascript,1'; import('file:///x')`],
    ['a relative path', `import './x'; import '../x'; import '.'; import '..'; import '/x'; require('./x/y')`],
  ])('is not %s', async (_, source) => {
    expect(await names({ 'src/a.jsx': source })).toEqual([]);
  });

  test('is seen after a template literal and after a regular expression', async () => {
    expect(await names({ 'a.js': 'const a = `${`}`}`; const b = /[/]`/; import "a"; const c = `\\``; require("b")' })).toEqual(['a', 'b']);
  });

  test('is told with the first place', async () => {
    const { imports } = await read({ 'a.ts': `\n\nconst é = '𝒳';\nimport type { A } from '@a/b/c';\nimport '@a/b';` });
    expect(imports).toEqual([
      { name: '@a/b', candidates: ['@a/b'], test: false, file: 'a.ts', line: 4 },
      { name: '@a/b', candidates: ['@a/b'], test: false, file: 'a.ts', line: 5 },
    ]);
  });

  test('of types may be of those that others wrote', async () => {
    const { imports } = await read({ 'a.d.ts': '/// <reference types="a" />\n/// <reference types="@b/c/d" />' });
    expect(imports.map(({ candidates }) => candidates)).toEqual([
      ['@types/a', 'a'],
      ['@types/b__c', '@b/c'],
    ]);
  });

  test('confuses no names that begin alike or differ in case', async () => {
    const found = await names({
      'a.ts': `import '@a/b'; import '@a/b-c'; import '@a/b-c/d'; import 'lib'; import 'lib-core/x'; import 'lib_core'; import 'Lib'`,
    });
    expect(found).toEqual(['@a/b', '@a/b-c', 'Lib', 'lib', 'lib-core', 'lib_core']);
  });

  test('is of a test by where it stands', async () => {
    const source = (name: string): string => `import '${name}'`;
    expect(
      await names({
        'src/a.ts': source('a'),
        'src/a.test.ts': source('b'),
        'src/a.spec.jsx': source('c'),
        'test/d.ts': source('d'),
        'src/__tests__/e.ts': source('e'),
        'src/test.ts': source('f'),
        'src/latest/g.ts': source('g'),
      }),
    ).toEqual(['a', 'f', 'g', '~b', '~c', '~d', '~e']);
  });

  test('is only of files that are the module’s own', async () => {
    expect(await names({ 'vendor/a.js': `import 'a'`, 'node_modules/b/b.js': `import 'b'`, 'src/c.js': `import 'c'` })).toEqual(['c']);
  });

  test('is found in files of any name', async () => {
    const files = {
      'with space.ts': `import 'a'`,
      'ünï/ço dé.js': `import 'b'`,
      'a"b\n.ts': `import 'c'`,
      '-.ts': `import 'd'`,
      'latin1:caf\xe9.js': `import 'e'`,
    };
    const { imports } = await read(files);
    expect(imports.map(({ name, file }) => `${name} ${file}`).sort()).toEqual([
      'a with space.ts',
      'b ünï/ço dé.js',
      'c a"b\n.ts',
      'd -.ts',
      'e caf\\xe9.js',
    ]);
  });

  test('is not read through a link', async () => {
    const outside = repository({ 'out.ts': `import 'b'` });
    expect(await names({ 'a.ts': `import 'a'`, 'b.ts': { link: `${outside}/out.ts` }, c: { link: outside } })).toEqual(['a']);
  });
});

describe('what cannot be known', () => {
  test('is a computed import', async () => {
    const { imports, unknown } = await read({ 'a.js': 'require("a");\nrequire(b);\nimport(`${c}/d`);\nimport("e" + f);' });
    expect(imports.map(({ name }) => name)).toEqual(['a']);
    expect(unknown).toEqual([
      { kind: 'computed', file: 'a.js', line: 2, reason: 'what require() asks for is only known in a run' },
      { kind: 'computed', file: 'a.js', line: 3, reason: 'what import() asks for is only known in a run' },
      { kind: 'computed', file: 'a.js', line: 4, reason: 'what begins with "e" is only known in a run' },
    ]);
  });

  test('is all that a file with a syntax error imports; what is seen of it and the other files count', async () => {
    const { imports, unknown } = await read({ 'a.ts': `import 'a';\nconst = 1;`, 'b.ts': `import 'b'` });
    expect(imports.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(unknown).toEqual([{ kind: 'unparsed', file: 'a.ts', line: 2, reason: expect.not.stringContaining('parse') }]);
  });

  test('is what a file imports that ends the parser; the others are read', async () => {
    const deep = `${'('.repeat(50_000)}1${')'.repeat(50_000)}`;
    const { imports, unknown } = await read({ 'a.ts': `import 'a'`, 'b.ts': deep, 'c.ts': `import 'c'` });
    expect(imports.map(({ name }) => name)).toEqual(['a', 'c']);
    expect(unknown).toEqual([{ kind: 'unparsed', file: 'b.ts', line: 1, reason: 'it ended the parser by SIGSEGV' }]);
  });

  test('is what many such files import, and what would be read after ten of them', async () => {
    const deep = Array.from({ length: 10 }, (_, n) => [`b${n}.ts`, `${'('.repeat(50_000)}1${')'.repeat(50_000)}`]);
    const { imports, unknown } = await read({ 'a.ts': `import 'a'`, ...Object.fromEntries(deep), 'c.ts': `import 'c'`, 'd.ts': '' });
    expect(imports.map(({ name }) => name)).toEqual(['a']);
    expect(unknown.map(({ file }) => file)).toEqual([...deep.map(([file]) => file), 'c.ts']);
    expect(unknown.at(-1)?.reason).toBe('2 files from here on are not read: 10 files before ended the parser');
  });

  test('is a file nested deeper than the stack', async () => {
    const { unknown } = await read({ 'a.js': `require('a'); a${' + a'.repeat(20_000)}` });
    expect(unknown).toEqual([{ kind: 'unparsed', file: 'a.js', line: 1, reason: 'is nested too deeply to be read' }]);
  });

  test('is a large file, unless it imports nothing', async () => {
    const large = 'a();\n'.repeat(900_000);
    const { unknown } = await read({ 'a.js': `import 'a';${large}`, 'b.js': large });
    expect(unknown).toEqual([{ kind: 'unparsed', file: 'a.js', line: 1, reason: expect.stringContaining('is larger than 4 MiB') }]);
  });

  test('is nothing in files that are no source', async () => {
    const files = { 'film.ts': Buffer.from([0x47, 0x40, 0, 0x10, 0]), 'words_de.ts': '<?xml version="1.0"?>\n<!DOCTYPE TS>\n<TS></TS>' };
    expect((await read(files)).unknown).toEqual([]);
  });

  test('is what a broken package.json names', async () => {
    const { unknown } = await read({ 'package.json': '{', 'test/fixtures/package.json': '{' });
    expect(unknown).toEqual([{ kind: 'unparsed', file: 'package.json', line: 1, reason: expect.stringContaining('no JSON') }]);
  });
});

const json = JSON.stringify;

describe('what lies in the repository', () => {
  test('is each package of it, by its own name and that of another member', async () => {
    const files = {
      'package.json': json({ name: 'root', workspaces: ['packages/*'] }),
      'packages/a/package.json': json({ name: '@m/a', dependencies: { '@m/b': 'workspace:*' } }),
      'packages/a/a.ts': `import '@m/a/x'; import '@m/b'; import 'root'; import '@m/b-c'`,
      'packages/b/package.json': json({ name: '@m/b' }),
    };
    const { imports, notes } = await read(files);
    expect(imports.map(({ name }) => name)).toEqual(['@m/b-c']);
    expect(notes).toEqual([]);
  });

  test('is no member where the workspace leaves it out', async () => {
    const files = {
      'package.json': json({ workspaces: ['packages/*', '!packages/old', 'apps/**'] }),
      'packages/old/package.json': json({ name: 'old' }),
      'packages/a/b/package.json': json({ name: 'deeper' }),
      'libs/x/package.json': json({ name: 'beside' }),
      'apps/a/b/package.json': json({ name: 'app' }),
      'a.js': `import 'old'; import 'deeper'; import 'beside'; import 'app'`,
    };
    const { imports, notes } = await read(files);
    expect(imports).toEqual([]);
    expect(notes.map((note) => note.split(':')[0])).toEqual([
      'beside is the copy in libs/x',
      'deeper is the copy in packages/a/b',
      'old is the copy in packages/old',
    ]);
  });

  test.each<[string, Record<string, string>, string]>([
    ['in vendor', { 'vendor/core/package.json': json({ name: 'core' }), 'package.json': '{}' }, 'vendor/core'],
    ['by file:', { 'libs/x/index.js': '', 'package.json': json({ dependencies: { core: 'file:libs/x/' } }) }, 'libs/x'],
    ['by link: from below', { 'libs/x/index.js': '', 'src/package.json': json({ devDependencies: { core: 'link:../libs/x' } }) }, 'libs/x'],
    ['as an archive', { 'core.tgz': '', 'package.json': json({ dependencies: { core: 'file:core.tgz' } }) }, 'core.tgz'],
    [
      'by an override',
      { 'libs/x/index.js': '', 'package.json': json({ dependencies: { core: '1' }, overrides: { core: 'file:libs/x' } }) },
      'libs/x',
    ],
  ])('is a copy %s, which is said', async (_, files, directory) => {
    const { imports, notes } = await read({ ...files, 'src/a.js': `import 'core/x'` });
    expect(imports).toEqual([]);
    expect(notes).toEqual([`core is the copy in ${directory}: no other module is used for it`]);
  });

  test.each<[string, Record<string, string>]>([
    ['outside of it by file:', { 'package.json': json({ dependencies: { core: 'file:../core' } }) }],
    ['in fixtures of tests', { 'test/fixtures/core/package.json': json({ name: 'core' }) }],
    ['of a name that begins alike', { 'vendor/core/package.json': json({ name: 'core-x' }) }],
  ])('is not a package %s', async (_, files) => {
    expect(await names({ ...files, 'a.js': `import 'core/x'` })).toEqual(['core']);
  });

  test('is a #alias, in each repository its own', async () => {
    const file = { 'src/a.js': `import '#db'; import '#x/y'` };
    const one = { ...file, 'package.json': json({ imports: { '#db': './src/db.js', '#x/*': './src/*.js' } }) };
    const other = { ...file, 'package.json': json({ imports: { '#db': { node: '@m/db/pool', default: './db.js' }, '#x/*': '@m/x-*/z' } }) };
    expect(await names(one)).toEqual([]);
    expect(await names(other)).toEqual(['@m/db', '@m/x-y']);
  });

  test('is not the package that an alias of npm stands for', async () => {
    expect(await names({ 'package.json': json({ dependencies: { core: 'npm:@m/core@^1' } }), 'a.js': `import 'core/x'` })).toEqual(['@m/core']);
  });
});

describe('paths of a tsconfig', () => {
  const config = (paths: object, more: object = {}): string => json({ compilerOptions: { paths, ...more } });

  test.each<[string, Record<string, string>, string[]]>([
    ['in the file itself', { 'tsconfig.json': config({ 'core/*': ['./src/*'] }), 'src/x.ts': '' }, []],
    [
      'with comments and trailing commas',
      { 'tsconfig.json': '{ // a\n"compilerOptions": { "paths": { "core/*": ["src/*",], }, }, /* b */ }', 'src/x.ts': '' },
      [],
    ],
    [
      'in an extended file',
      { 'tsconfig.json': json({ extends: './cfg/base' }), 'cfg/base.json': config({ 'core/*': ['../src/*'] }), 'src/x.ts': '' },
      [],
    ],
    [
      'in one of several that are extended, beside one of a package that is not installed',
      { 'tsconfig.json': json({ extends: ['@tsconfig/node20', './b.json'] }), 'b.json': config({ 'core/*': ['src/*'] }), 'src/x.ts': '' },
      [],
    ],
    [
      'in a chain of three',
      {
        'tsconfig.json': json({ extends: './b.json' }),
        'b.json': json({ extends: './c' }),
        'c.json': config({ core: ['.'], 'core/*': ['src/*'] }),
        'src/x.ts': '',
      },
      [],
    ],
    [
      'in an extended package of the workspace',
      {
        'tsconfig.json': json({ extends: '@m/cfg/base.json' }),
        'cfg/package.json': json({ name: '@m/cfg' }),
        'cfg/base.json': config({ 'core/*': ['../src/*'] }),
        'src/x.ts': '',
      },
      [],
    ],
    [
      'in a reference',
      {
        'tsconfig.json': json({ files: [], references: [{ path: './cfg' }] }),
        'cfg/tsconfig.json': config({ 'core/*': ['../src/*'] }),
        'src/x.ts': '',
      },
      [],
    ],
    ['beside baseUrl', { 'tsconfig.json': config({ 'core/*': ['lib/*'] }, { baseUrl: './src' }), 'src/lib/x.ts': '' }, []],
    ['by baseUrl alone', { 'tsconfig.json': json({ compilerOptions: { baseUrl: 'src' } }), 'src/core/x.ts': '' }, []],
    ['of a jsconfig.json', { 'jsconfig.json': json({ compilerOptions: { baseUrl: '.' } }), 'core/x/index.jsx': '' }, []],
    [
      'with ${configDir}',
      { 'tsconfig.json': json({ extends: './cfg/b.json' }), 'cfg/b.json': config({ 'core/*': ['${configDir}/src/*'] }), 'src/x.ts': '' },
      [],
    ],
    ['with .js for what is .ts', { 'tsconfig.json': config({ 'core/x': ['./src/y.js'] }), 'src/y.ts': '' }, []],
    ['to what is not there', { 'tsconfig.json': config({ 'core/*': ['./gen/*'] }) }, ['core']],
    ['to another package', { 'tsconfig.json': config({ 'core/*': ['./node_modules/@m/core/dist/*'] }) }, ['@m/core']],
    [
      'overridden by the file that extends',
      { 'tsconfig.json': json({ extends: './b.json', compilerOptions: { paths: {} } }), 'b.json': config({ 'core/*': ['src/*'] }), 'src/x.ts': '' },
      ['core'],
    ],
    ['of another project', { 'web/tsconfig.json': config({ 'core/*': ['./src/*'] }), 'web/src/x.ts': '' }, ['core']],
    ['hidden by a nearer config', { 'tsconfig.json': config({ 'core/*': ['./src/*'] }), 'app/tsconfig.json': '{}', 'src/x.ts': '' }, ['core']],
    ['that extends itself', { 'tsconfig.json': json({ extends: './tsconfig.json' }) }, ['core']],
    ['that is broken', { 'tsconfig.json': '[[[' }, ['core']],
  ])('%s', async (_, files, expected) => {
    expect(await names({ 'app/a.ts': `import 'core/x'`, ...files })).toEqual(expected);
  });

  test('apply to no other repository', async () => {
    const app = { 'a.ts': `import '@app/x'` };
    expect(await names({ ...app, 'tsconfig.json': config({ '@app/*': ['./*'] }), 'x.ts': '' })).toEqual([]);
    expect(await names({ ...app, 'x.ts': '' })).toEqual(['@app/x']);
  });
});

test('names are declared where they stand, but not those of what is carried along', async () => {
  const { declared } = await read({
    'types/package.json': '{\n  "version": "1",\n  "name": "@m/types"\n}',
    'package.json': json({ private: true }),
    'vendor/b/package.json': json({ name: 'b' }),
  });
  expect(declared).toEqual([{ name: '@m/types', directory: 'types', file: 'types/package.json', line: 3 }]);
});

const noise = fc.oneof(
  fc.constantFrom(
    `// import 'x1'`,
    `/* import 'x2' \n require('x3') */`,
    '`import "x4" ${1 + `require("x5")`}`;',
    '`${"}"} import "x6"`;',
    `"import 'x7'";`,
    `/require('x8')[/]"/.test(a);`,
    `a.require('x9');`,
    'tag`export * from "x10"`;',
    `({ import: 1, require: 2 });`,
    `<p title="import 'x11'">import 'x12'; {'require("x13")'}</p>;`,
    `a / b / "import('x14')";`,
    `class A { import() {} require() { return /"/; } }`,
  ),
  fc.string({ unit: 'grapheme' }).map((text) => `/* ${text.replaceAll('*/', '')} */`),
  fc.string().map((text) => `;${JSON.stringify(text)};`),
);

const importing = fc.tuple(fc.constantFrom('p', 'p-q', '@a/b', '@a/b-c'), fc.nat(8)).chain(([name, at]) =>
  fc
    .constantFrom(
      (text: string) => `import '${text}';`,
      (text: string) => `export * from "${text}/deep";`,
      (text: string) => `import type { A${at} } from '${text}';`,
      (text: string) => `{ const a = require(\`${text}\`); }`,
      (text: string) => `{ import('${text}/x'); }`,
      (text: string) => `{ let a: import('${text}').A; }`,
    )
    .map((write) => ({ name, text: write(name) })),
);

test('whatever stands around them, exactly the imports are found', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(noise, importing)), (parts) => {
      const source = parts.map((part) => (typeof part === 'string' ? part : part.text)).join('\n');
      const expected = new Set(parts.flatMap((part) => (typeof part === 'string' ? [] : [part.name])));
      const { uses, broken, computed } = usesOf('a.tsx', source);
      expect({ broken, computed }).toEqual({ broken: null, computed: [] });
      expect(new Set(uses.map(({ text }) => text.replace(/\/(deep|x)$/, '')))).toEqual(expected);
    }),
  );
});

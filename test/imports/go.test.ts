import { candidatesOf, derive, importsOf, removeRepositories } from './repository';

afterAll(removeRepositories);

const app = { 'go.mod': 'module example.com/app\n\ngo 1.22\n' };

describe('what Go code imports', () => {
  test('is what stands in its import declarations, with the line of each', async () => {
    const found = await derive({
      ...app,
      'main.go':
        'package main\n\nimport "fmt"\nimport (\n\tc "example.com/core"\n\t_ "example.com/side/effect"\n\t. "example.com/dot"\n)\n\nfunc main() { fmt.Println(c.X) }\n',
    });
    expect(importsOf(found)).toEqual(['example.com/core main.go:5', 'example.com/dot main.go:7', 'example.com/side/effect main.go:6']);
    expect(found.unknown).toEqual([]);
  });

  test('is not what stands in comments, strings and raw strings', async () => {
    const found = await derive({
      ...app,
      'a.go': `// import "example.com/one"\n/* import "example.com/two" */\npackage dataimport\n\nimport "example.com/core" // import "example.com/three"\n\nconst s = "import \\"example.com/four\\""\n\nvar r = \`\nimport "example.com/five"\n\`\n`,
    });
    expect(importsOf(found)).toEqual(['example.com/core a.go:5']);
  });

  test('is there behind each build tag and in files for other systems', async () => {
    const found = await derive({
      ...app,
      'a_windows.go': 'package a\n\nimport "example.com/windows"\n',
      'b.go': '//go:build never && !ever\n\npackage a\n\nimport "example.com/tagged"\n',
      'c.go': '//go:build ignore\n\npackage main\n\nimport "example.com/ignored"\n',
      'd.go': 'package a\n\n// #include <x.h>\nimport "C"\nimport "example.com/cgo"\n',
    });
    expect(importsOf(found)).toEqual([
      'example.com/cgo d.go:5',
      'example.com/ignored c.go:5',
      'example.com/tagged b.go:5',
      'example.com/windows a_windows.go:3',
    ]);
  });

  test('of tests is kept apart, and said twice where code imports it too', async () => {
    const found = await derive({
      ...app,
      'a.go': 'package a\n\nimport "example.com/both"\n',
      'a_test.go': 'package a_test\n\nimport "example.com/both"\nimport "example.com/only"\n',
      'test/helper/h.go': 'package helper\n\nimport "example.com/helper"\n',
    });
    expect(importsOf(found)).toEqual([
      'example.com/both a.go:3',
      'example.com/both a_test.go:3 (test)',
      'example.com/helper test/helper/h.go:3 (test)',
      'example.com/only a_test.go:4 (test)',
    ]);
  });

  test('keeps apart names that begin alike, and a major version from the one before', async () => {
    const found = await derive({
      ...app,
      'a.go':
        'package a\n\nimport (\n"example.com/lib-core/p"\n"example.com/lib/p"\n"example.com/lib/v2/p"\n"example.com/lib/v1/p"\n"example.com/lib/v2"\n)\n',
    });
    expect(candidatesOf(found, 'example.com/lib/p')).toEqual(['example.com/lib/p', 'example.com/lib', 'example.com']);
    expect(candidatesOf(found, 'example.com/lib-core/p')).toEqual(['example.com/lib-core/p', 'example.com/lib-core', 'example.com']);
    expect(candidatesOf(found, 'example.com/lib/v2/p')).toEqual(['example.com/lib/v2/p', 'example.com/lib/v2', 'example.com']);
    expect(candidatesOf(found, 'example.com/lib/v2')).toEqual(['example.com/lib/v2', 'example.com']);
    expect(candidatesOf(found, 'example.com/lib/v1/p')).toContain('example.com/lib');
  });

  test('of its own module, of one nested in it and of a package there that is called v2 is no edge', async () => {
    const found = await derive({
      ...app,
      'a.go': 'package a\n\nimport (\n"example.com/app/b"\n"example.com/app/nested/c"\n"example.com/app/v2"\n"example.com/app"\n"./b"\n)\n',
      'b/b.go': 'package b\n',
      'v2/v2.go': 'package v2\n',
      'nested/go.mod': 'module example.com/app/nested\n',
      'nested/c/c.go': 'package c\n\nimport "example.com/core"\nimport "example.com/app/b"\n',
    });
    expect(importsOf(found)).toEqual(['example.com/core nested/c/c.go:3']);
    expect(found.notes).toEqual([]);
  });

  test('goes on where the own name ends: of another module, or made by the build', async () => {
    const found = await derive({ ...app, 'a.go': 'package a\n\nimport "example.com/app/extra/x"\nimport "example.com/app/v2/p"\n' });
    expect(candidatesOf(found, 'example.com/app/extra/x')).toEqual(['example.com/app/extra/x', 'example.com/app/extra']);
    expect(candidatesOf(found, 'example.com/app/v2/p')).toEqual(['example.com/app/v2/p', 'example.com/app/v2']);
  });

  test('is the case that its author wrote', async () => {
    const found = await derive({ ...app, 'a.go': 'package a\n\nimport "example.com/Core"\n' });
    expect(candidatesOf(found, 'example.com/Core')).toEqual(['example.com/Core', 'example.com']);
  });

  test('is no edge where the tree has a copy, which is said', async () => {
    const found = await derive({
      'go.mod':
        'module example.com/app\n\nreplace example.com/replaced => ./third/replaced\n\nreplace example.com/away => ../away\n\nreplace example.com/forked => other.org/fork v1.0.0\n',
      'a.go':
        'package a\n\nimport (\n"example.com/replaced/p"\n"example.com/vendored/p"\n"example.com/carried"\n"example.com/away"\n"example.com/forked"\n)\n',
      'other.org/fork/f.go': 'package f\n',
      'third/replaced/go.mod': 'module example.com/replaced\n',
      'third/replaced/p/p.go': 'package p\n',
      'vendor/example.com/vendored/p/p.go': 'package p\n\nimport "example.com/of-vendored"\n',
      'copies/carried/go.mod': 'module example.com/carried\n',
      'copies/carried/c.go': 'package carried\n',
    });
    expect(importsOf(found)).toEqual(['example.com/away a.go:7', 'example.com/forked a.go:8']);
    expect(found.notes).toEqual([
      'example.com/carried is the copy in copies/carried, which is used',
      'example.com/replaced is the copy in third/replaced, which is used',
      'example.com/vendored/p is the copy in vendor/example.com/vendored/p, which is used',
    ]);
  });

  test('follows a go.work, and a module without a go.mod has no name', async () => {
    const found = await derive({
      'go.work': 'go 1.22\n\nuse ./one\n\nreplace example.com/two => ./other\n',
      'one/go.mod': 'module example.com/one\n',
      'one/a.go': 'package one\n\nimport "example.com/two"\nimport "example.com/three"\n',
      'other/b.go': 'package two\n',
    });
    expect(importsOf(found)).toEqual(['example.com/three one/a.go:4']);
    expect(found.notes).toEqual(['example.com/two is the copy in other, which is used']);
  });

  test('is not what lies in testdata, or what no Go command compiles', async () => {
    const found = await derive({
      ...app,
      'testdata/a.go': 'package a\n\nimport "example.com/one"\n',
      'b/testdata/b.go': 'package b\n\nimport "example.com/four"\n',
      '_off.go': 'package a\n\nimport "example.com/two"\n',
      'notes.txt': 'import "example.com/three"\n',
    });
    expect(found.imports).toEqual([]);
  });

  test('includes the tools of a go.mod', async () => {
    const found = await derive({ 'go.mod': 'module example.com/app\n\ngo 1.24\n\ntool example.com/tools/cmd/lint\n' });
    expect(importsOf(found)).toEqual(['example.com/tools/cmd/lint go.mod:5']);
  });
});

describe('Go code that does not parse', () => {
  test('is said with its line, beside what was found', async () => {
    const found = await derive({
      ...app,
      'a.go': 'package a\n\nimport "example.com/core"\nimport broken\n',
      'b.go': '',
      'c.go': Buffer.from([0, 255, 1, 2]),
      'd.go': '//line other.y:400\npackage d\nimport "\n',
      // What follows the imports is the compiler's business.
      'e.go': 'package e\n\nimport "example.com/e"\n\nfunc {{{\n',
    });
    expect(importsOf(found)).toEqual(['example.com/core a.go:3', 'example.com/e e.go:3']);
    expect(found.unknown.map(({ kind, file, line }) => [kind, file, line])).toEqual([
      ['unparsed', 'a.go', 4],
      ['unparsed', 'b.go', 1],
      ['unparsed', 'c.go', 1],
      ['unparsed', 'd.go', 3],
    ]);
  });

  test('may be a go.mod, and a folder of that name is none', async () => {
    const found = await derive({ 'go.mod': 'module example.com/app\n\nwhatever x\n', 'b/go.mod/c.go': 'package c\n\nimport "example.com/core"\n' });
    expect(found.unknown).toEqual([{ kind: 'unparsed', file: 'go.mod', line: 3, reason: 'unknown directive: whatever' }]);
    expect(importsOf(found)).toEqual(['example.com/core b/go.mod/c.go:3']);
  });
});

describe('what Go code exports', () => {
  test('is the module path of the go.mod whose directory an artifact names', async () => {
    const files = {
      'go.mod': '// module example.com/no\nmodule example.com/app // the app\n',
      'lib/go.mod': 'module (\n\texample.com/app/lib\n)\n',
      'other/go.mod': 'module example.com/app/other\n',
    };
    expect((await derive(files, { lib: { go: 'lib/' }, app: { go: '.' } })).exports).toEqual([
      { language: 'go', name: 'example.com/app', artifact: 'app', file: 'go.mod', line: 2 },
      { language: 'go', name: 'example.com/app/lib', artifact: 'lib', file: 'lib/go.mod', line: 1 },
    ]);
    expect((await derive(files)).exports).toEqual([]);
  });

  test('is nothing where there is no go.mod, which is said', async () => {
    const found = await derive({ 'a/a.go': 'package a\n' }, { a: { go: './a' } });
    expect(found.exports).toEqual([]);
    expect(found.notes).toEqual(['artifact a: no go.mod names what is in ./a, so no other module can import it']);
  });
});

import { createMissingNames } from '../../src/builder/missing';
import type { PackageName } from '../../src/schema/messages';

function namesIn(output: string, known: PackageName[] = []): string[] {
  const missing = createMissingNames(known);
  missing.write(Buffer.from(output));
  return missing.found().map(({ language, name }) => `${language} ${name}`);
}

describe('a name that a tool did not find is read from what it says', () => {
  test.each<[string, string[]]>([
    [
      'main.go:3:8: no required module provides package example.com/core/x; to add it:',
      ['go example.com/core/x', 'go example.com/core', 'go example.com'],
    ],
    ['a.go:2:8: cannot find module providing package core/v3/x: module lookup disabled by GOPROXY=off', ['go core/v3/x', 'go core/v3']],
    ['main.go:4:2: package board/types is not in std (/usr/local/go/src/board/types)', ['go board/types', 'go board']],
    ['go: core.example/lib@v1.0.0: reading https://proxy/core.example/lib/@v/v1.0.0.info: 404', ['go core.example/lib', 'go core.example']],
    ['main.go:6:2: core@v0.0.0: module lookup disabled by GOPROXY=off', ['go core']],
    ["app.ts(1,19): error TS2307: Cannot find module '@mesh/core/deep' or its corresponding type declarations.", ['npm @mesh/core']],
    ["Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'core' imported from /tmp/build/a.mjs", ['npm core']],
    ["npm error 404  '@mesh/core@^1.0.0' is not in this registry.", ['npm @mesh/core']],
    ["\u001b[31mCannot find module './own.js'\u001b[0m", []],
    ["ModuleNotFoundError: No module named 'core.sub'", ['python core.sub', 'python core']],
    ['ERROR: No matching distribution found for mesh-core', ['python mesh_core']],
    ['error: no matching package named `mesh-core` found', ['rust mesh_core']],
    ['error[E0432]: unresolved import `mesh_core::x`', ['rust mesh_core']],
    ['error[E0433]: failed to resolve: use of unresolved module or unlinked crate `mesh_core`', ['rust mesh_core']],
    ['error[E0432]: unresolved import `crate::x`', []],
    ['all 14 tests passed', []],
  ])('%s', (line, names) => {
    expect(namesIn(`before\n${line}\nafter\n`)).toEqual(names);
  });

  test('but not where what was laid carries it: that module is there, and has no such part', () => {
    const known: PackageName[] = [{ language: 'go', name: 'example.com/core' }];
    expect(namesIn('no required module provides package example.com/core/gone; to add it:\n', known)).toEqual([]);
    expect(namesIn("Cannot find module 'example.com/core'", known)).toEqual(['npm example.com']);
  });

  test('also across two pieces of output and without a last line feed, at most 100', () => {
    const missing = createMissingNames([]);
    missing.write(Buffer.from('No module na'));
    missing.write(Buffer.from("med 'core'"));
    expect(missing.found()).toEqual([{ language: 'python', name: 'core' }]);
    expect(namesIn(Array.from({ length: 200 }, (_, i) => `No module named 'm${i}'`).join('\n'))).toHaveLength(100);
  });
});

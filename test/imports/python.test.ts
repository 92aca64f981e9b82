import { candidatesOf, type Derived, derive, importsOf, removeRepositories } from './repository';

afterAll(removeRepositories);

describe('what Python code imports', () => {
  test('is each import wherever it stands, with its line', async () => {
    const found = await derive({
      'app/__init__.py': '',
      'app/main.py': `import os, core
import a.b.c as d
from typing import TYPE_CHECKING
from wide import (
    one,
    two as three,
)
from star import *
if TYPE_CHECKING:
    import checked
try:
    import fast
except ImportError:
    import slow as fast
def f():
    import lazy
class K:
    async def g(self):
        from lazier import x
`,
    });
    expect(importsOf(found)).toEqual([
      'a.b.c app/main.py:2',
      'checked app/main.py:10',
      'core app/main.py:1',
      'fast app/main.py:12',
      'lazier.x app/main.py:19',
      'lazy app/main.py:16',
      'slow app/main.py:14',
      'star app/main.py:8',
      'wide.one app/main.py:5',
      'wide.two app/main.py:6',
    ]);
    expect(candidatesOf(found, 'wide.one')).toEqual(['wide.one', 'wide']);
    expect(candidatesOf(found, 'a.b.c')).toEqual(['a.b.c', 'a.b', 'a']);
    expect(found.unknown).toEqual([]);
  });

  test('is not what stands in docstrings, strings and comments', async () => {
    const found = await derive({
      'a.py':
        '"""\nimport one\n\n>>> import two\n"""\n# import three\nx = "import four"\ny = f"""\nimport five {x}\n"""\nimport core  # import six\nexec("import seven")\n',
    });
    expect(importsOf(found)).toEqual(['core a.py:11']);
  });

  test('by a text that stands there is an import, and by a computed one is said to be unknown', async () => {
    const found = await derive({
      'a.py': `import importlib
import importlib as il
from importlib import import_module as load
importlib.import_module("core.part")
il.import_module(name="named")
load("loaded")
__import__("dunder")
load(".x", package="far.away")
load("..x", package="far.away")
load(".own", package=__package__)
load("a" + b)
il.import_module(f"{b}.c")
other.import_module("no")
`,
    });
    expect(importsOf(found)).toEqual(['core.part a.py:4', 'dunder a.py:7', 'far.away.x a.py:8', 'far.x a.py:9', 'loaded a.py:6', 'named a.py:5']);
    expect(found.unknown.map(({ kind, line }) => [kind, line])).toEqual([
      ['computed', 11],
      ['computed', 12],
    ]);
    expect(found.notes).toEqual(['a.py:11 a name that only a run could tell is imported', 'a.py:12 a name that only a run could tell is imported']);
  });

  test('of its own packages, relatively or from src, is no edge', async () => {
    const found = await derive({
      'src/app/__init__.py': 'from . import a\nfrom .core import x\nfrom .. import y\nimport app.a\nfrom app import a\nimport core\n',
      'src/app/a.py': 'from app import missing\n',
      'src/app/core.py': '',
      'tests/test_a.py': 'import app\nimport helper\nfrom core import z\n',
      'tests/helper.py': 'import pytest\n',
      'scripts/run.py': 'import beside\n',
      'scripts/beside.py': '',
    });
    // `app/core.py` is not what `import core` means inside a package.
    expect(importsOf(found)).toEqual(['core src/app/__init__.py:6', 'core.z tests/test_a.py:3 (test)', 'pytest tests/helper.py:1 (test)']);
  });

  test('of a name that several repositories share is outside where the tree has no such part', async () => {
    const found = await derive({
      'src/ns/app/__init__.py': 'import ns.app\nfrom ns.core import x\nfrom ns import other\nimport ns\n',
    });
    expect(importsOf(found)).toEqual(['ns src/ns/app/__init__.py:4', 'ns.core.x src/ns/app/__init__.py:2', 'ns.other src/ns/app/__init__.py:3']);
  });

  test('is no edge where the tree has a copy, which is said', async () => {
    const found = await derive({
      'app/__init__.py': 'import core\nimport lib\nimport away\n',
      'vendor/core/__init__.py': 'import of_vendored\n',
      'third_party/lib/pyproject.toml': '[project]\nname = "lib"\n',
      'third_party/lib/src/lib/__init__.py': '',
    });
    expect(importsOf(found)).toEqual(['away app/__init__.py:3']);
    expect(found.notes).toEqual(['core is the copy in vendor/core, which is used', 'lib is the copy in third_party/lib, which is used']);
  });

  test('is an edge where another project of the tree only has a file of that name, and none where that is a name of its own', async () => {
    const found = await derive({
      'app/main.py': 'import core\nimport shown\n',
      'examples/one/pyproject.toml': '[project]\nname = "shown"\n',
      'examples/one/shown/__init__.py': 'import shown\n',
      'examples/one/core.py': '',
      'pyproject.toml': '[tool.setuptools.packages.find]\nwhere = ["lib"]\n',
      'lib/own/__init__.py': '',
      'scripts/x.py': 'import own\nimport os\n',
    });
    expect(importsOf(found)).toEqual(['core app/main.py:1']);
    expect(found.notes).toEqual(['shown is the copy in examples/one, which is used']);
  });

  test('of tests is kept apart', async () => {
    const found = await derive({
      'a.py': 'import both\n',
      'test_a.py': 'import both\nimport one\n',
      'a_test.py': 'import two\n',
      'conftest.py': 'import three\n',
      'tests/x.py': 'import four\n',
      'attest.py': 'import five\n',
    });
    expect(importsOf(found)).toEqual([
      'both a.py:1',
      'both test_a.py:1 (test)',
      'five attest.py:1',
      'four tests/x.py:1 (test)',
      'one test_a.py:2 (test)',
      'three conftest.py:1 (test)',
      'two a_test.py:1 (test)',
    ]);
  });

  test('keeps case, and - is not _', async () => {
    const found = await derive({ 'a.py': 'import Core\nimport lib_core\nimport lib\n' });
    expect(found.imports.map(({ candidates }) => candidates)).toEqual([['Core'], ['lib'], ['lib_core']]);
  });

  test('is read in the encoding that the file says, and in stubs', async () => {
    const found = await derive({
      'a.py': Buffer.from('# -*- coding: latin-1 -*-\nx = "\u00e9"\nimport core\n', 'latin1'),
      'b.py': Buffer.from('\ufeffimport bom\n'),
      'c.pyi': 'import stub\n',
    });
    expect(importsOf(found)).toEqual(['bom b.py:1', 'core a.py:3', 'stub c.pyi:1']);
    expect(found.unknown).toEqual([]);
  });
});

describe('Python code that does not parse', () => {
  test('is said with its line, and the others are read', async () => {
    const found = await derive({
      'a.py': 'import core\nprint "import this"\n',
      'b.py': Buffer.from([0x69, 0x6d, 0x70, 0x6f, 0x72, 0x74, 0, 255]),
      'c.py': '# coding: nothing-known\nimport x\n',
      'd.py': `import x\ny = ${'('.repeat(5_000)}`,
      'e.py': `import x\ny = ${'not '.repeat(100_000)}1\n`,
      'f.py': Buffer.alloc(5 << 20, 'import x\n'),
      'g.py': `x = [\n${'1,\n'.repeat(2_000_000)}]\n`,
      'h.py': 'import last\n',
    });
    expect(importsOf(found)).toEqual(['last h.py:1']);
    expect(found.unknown.map(({ kind, file, line }) => `${kind} ${file}:${line}`)).toEqual([
      'unparsed a.py:2',
      'unparsed b.py:1',
      'unparsed c.py:1',
      'unparsed d.py:2',
      'unparsed e.py:1',
      'unparsed f.py:1',
    ]);
  });
});

describe('what Python code exports', () => {
  const exported = async (files: Record<string, string>, wheel = 'dist/*.whl'): Promise<string[]> => names(await derive(files, { wheel: { wheel } }));
  const names = (found: Derived): string[] => found.exports.map(({ name, file, line }) => `${name} ${file}:${line}`);

  test('is the package of its src, whatever the project is called', async () => {
    const files = { 'src/core/__init__.py': '', 'src/core/part/__init__.py': '', 'tests/test_a.py': '' };
    expect(await exported({ ...files, 'pyproject.toml': '[build-system]\n\n[project]\nname = "Example-Core"\n' })).toEqual(['core pyproject.toml:4']);
  });

  test('is the package beside pyproject.toml that is called like the project', async () => {
    const files = { 'my_core/__init__.py': '', 'other/__init__.py': '', 'tests/__init__.py': '', 'setup.py': '' };
    expect(await exported({ ...files, 'pyproject.toml': '[project]\nname = "My-Core"\n' })).toEqual(['my_core pyproject.toml:2']);
    expect(await exported({ ...files, 'pyproject.toml': '[project]\nname = "unlike"\n' })).toEqual([
      'my_core pyproject.toml:2',
      'other pyproject.toml:2',
    ]);
  });

  test('is a single module, and a part of a name that several share', async () => {
    expect(await exported({ 'single.py': '', 'pyproject.toml': '[project]\nname = "single"\n' })).toEqual(['single pyproject.toml:2']);
    expect(await exported({ 'src/ns/core/__init__.py': '', 'src/ns/one.py': '', 'pyproject.toml': '' })).toEqual([
      'ns.core pyproject.toml:1',
      'ns.one pyproject.toml:1',
    ]);
  });

  test.each([
    ['setuptools', '[tool.setuptools]\npackages = ["core", "core.part"]\npy-modules = ["one"]\n', ['core', 'one']],
    ['setuptools', '[tool.setuptools.packages.find]\nwhere = ["lib"]\n', ['core']],
    ['setuptools', '[tool.setuptools.package-dir]\n"" = "lib"\n', ['core']],
    ['poetry', '[tool.poetry]\nname = "x"\npackages = [{ include = "core", from = "lib" }]\n', ['core']],
    ['hatch', '[tool.hatch.build.targets.wheel]\npackages = ["lib/core"]\n', ['core']],
    ['flit', '[tool.flit.module]\nname = "core"\n', ['core']],
    ['uv', '[tool.uv.build-backend]\nmodule-name = "core"\n', ['core']],
    ['maturin', '[tool.maturin]\nmodule-name = "core._native"\n', ['core']],
    ['any', '[project]\nname = "x"\nimport-names = ["core", "one ; private"]\n', ['core', 'one']],
  ])('is what the settings of %s say', async (_, settings, expected) => {
    const files = { 'lib/core/__init__.py': '', 'one.py': '', 'src/no/__init__.py': '' };
    expect((await derive({ ...files, 'pyproject.toml': settings }, { wheel: { wheel: 'dist/x.whl' } })).exports.map(({ name }) => name)).toEqual(
      expected,
    );
  });

  test('is that of the project above the wheel, with which it is bound', async () => {
    const files = {
      'pyproject.toml': '[project]\nname = "top"\n',
      'top/__init__.py': '',
      'py/core/pyproject.toml': '[project]\nname = "core"\n',
      'py/core/core/__init__.py': '',
    };
    const found = await derive(files, { one: { wheel: 'py/core/dist/*.whl' }, two: { wheel: 'out/top-1-py3-none-any.whl' } });
    expect(found.exports.map(({ name, artifact }) => [name, artifact])).toEqual([
      ['core', 'one'],
      ['top', 'two'],
    ]);
    expect((await derive(files)).exports).toEqual([]);
  });

  test('is not known where pyproject.toml does not parse, which is said', async () => {
    const found = await derive({ 'pyproject.toml': '[project]\nname = \n' }, { one: { wheel: 'dist/*.whl' } });
    expect(found.exports).toEqual([]);
    expect(found.unknown).toMatchObject([{ kind: 'unparsed', file: 'pyproject.toml', line: 2 }]);
  });
});

import { cpSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createRegistryClient } from '../../src/registry';
import type { BuildAnswer, Input } from '../../src/schema/messages';
import { registryUrl } from '../support/servers';
import type { Repository } from './world';
import { answerOf, builderOfFile, fitOf, inputFrom, newRepository, warmGo } from './world';

const mesh = builderOfFile();

const ANSWER_MS = 240_000;
const TEST_MS = 500_000;

interface Module {
  artifact: Record<string, string>;
  files: Record<string, string>;
  build?: Record<string, unknown>;
  inputs?: Input[];
  check?: boolean;
  /** Directories that its home holds before the build, by their names there. */
  home?: Record<string, string>;
}

async function build(module: Module): Promise<{ answer: BuildAnswer; repository: Repository; commit: string }> {
  const repository = newRepository();
  const manifest = { module: repository.module, build: module.build ?? {}, artifacts: { a: module.artifact } };
  for (const [name, from] of Object.entries(module.home ?? {})) {
    cpSync(from, join(mesh.builder.home, 'homes', repository.module, name), { recursive: true });
  }
  const commit = repository.commit({ ...module.files, 'module.yaml': JSON.stringify(manifest) });
  const { inputs = [], check } = module;
  const answer = await answerOf(mesh.control, repository, commit, { inputs, ...(check === undefined ? {} : { check }), timeoutMs: ANSWER_MS });
  return { answer, repository, commit };
}

/** Builds it, and gives what it made as the input of another. */
async function inputOf(module: Module): Promise<Input> {
  const { answer, repository, commit } = await build(module);
  const [made] = fitOf(answer).artifacts;
  if (made === undefined) throw new Error('no artifact');
  return inputFrom(made, { module: repository.module, commit });
}

/** What the one file of a fit build says; else the reason why it is none. */
async function said(module: Omit<Module, 'artifact'>): Promise<string> {
  const { answer } = await build({ ...module, artifact: { file: 'said' } });
  if (answer.outcome !== 'fit') return answer.reason;
  expect(answer.inputs).toEqual(module.inputs);
  const [made] = answer.artifacts;
  return (await createRegistryClient({ url: registryUrl() }).getBlob(made?.repository ?? '', made?.blob ?? '', 10_000)).toString();
}

/** Nothing was written into the tree, and nothing can be written into what was laid. */
const UNTOUCHED = 'test -z "$(git status --porcelain --ignored)" && ! touch "$TALLY_INPUTS/x" 2>/dev/null';

describe('Go', () => {
  // The standard library is compiled once for all of these.
  const env = warmGo();
  const base: Module = {
    artifact: { go: '.' },
    files: {
      'go.mod': 'module example.com/base\n\ngo 1.21\n\nreplace (\n\texample.com/other => ../one // (for now) ours\n)\n',
      'base.go': 'package base\n\nfunc Y() string { return "base" }\n',
    },
  };
  const core = (inputs: Input[]): Module => ({
    artifact: { go: 'lib' },
    files: {
      'lib/go.mod': 'module example.com/core\n\ngo 1.22\n\nrequire example.com/base v0.0.0\n\nreplace example.com/other => ../two\n',
      'lib/x/x.go': 'package x\n\nimport "example.com/base"\n\nfunc X() string { return "core on " + base.Y() }\n',
    },
    inputs,
  });
  const main = (imported: string): string => `package main\n\nimport x "${imported}"\n\nfunc main() { print(x.X()) }\n`;

  test(
    'finds modules of the mesh, and what they build on, in a workspace outside the tree',
    async () => {
      const lowest = await inputOf(base);
      const middle = await inputOf(core([lowest]));
      const files = {
        'go.mod': 'module example.com/app\n\ngo 1.21\n\nrequire (\n\t"example.com/core" v1.2.3 // (indirect)\n)\n',
        'main.go': main('example.com/core/x'),
      };
      const run = `${UNTOUCHED} && go list -m all && go build -o app . && ./app 2> said`;
      expect(await said({ files, build: { env, run }, inputs: [lowest, middle] })).toBe('core on base');
    },
    TEST_MS,
  );

  test(
    'names what it did not find, with each module that it could be of',
    async () => {
      const files = { 'go.mod': 'module example.com/app\n\ngo 1.21\n', 'main.go': main('example.com/core/v2/x') };
      const { answer } = await build({ artifact: { file: 'said' }, files, build: { env, run: 'go build -o said .' } });
      expect(answer).toMatchObject({ outcome: 'failed', step: 'run' });
      const names = ['example.com/core/v2/x', 'example.com/core/v2', 'example.com'].map((name) => ({ language: 'go', name }));
      expect('missing' in answer ? answer.missing : []).toEqual(names);
    },
    TEST_MS,
  );
});

describe('Node and TypeScript', () => {
  // A command sees nothing of this package where that lies in a folder which the sandbox covers: the module's own home holds the compiler.
  const compiler = join(dirname(require.resolve(`@typescript/typescript-${process.platform}-${process.arch}/package.json`)), 'lib');
  const packageJson = (name: string, peers: string[] = []): string =>
    JSON.stringify({
      ...{ name, version: '1.0.0', type: 'commonjs', main: 'index.js', types: 'index.d.ts' },
      peerDependencies: Object.fromEntries(peers.map((peer) => [peer, '*'])),
      peerDependenciesMeta: Object.fromEntries(peers.map((peer) => [peer, { optional: true }])),
    });

  test(
    'find packages of the mesh, and what they build on, above the tree',
    async () => {
      const lowest = await inputOf({
        artifact: { npm: '.' },
        files: {
          'package.json': packageJson('@mesh/base'),
          'index.js': 'exports.y = "base";',
          'index.d.ts': 'export type Y = "base";\nexport const y: Y;',
        },
      });
      const middle = await inputOf({
        artifact: { npm: 'pkg' },
        files: {
          'pkg/package.json': packageJson('@mesh/base-core', ['@mesh/base']),
          'pkg/index.js': 'exports.x = `core on ${require("@mesh/base").y}`;',
          'pkg/index.d.ts': 'import type { Y } from "@mesh/base";\nexport const x: `core on ${Y}`;',
        },
        inputs: [lowest],
      });
      const files = {
        'package.json': packageJson('app', ['@mesh/base-core']),
        'app.ts': 'import { x } from "@mesh/base-core";\nconst exact: "core on base" = x;\nconsole.log(exact);',
        'tsconfig.json': JSON.stringify({
          compilerOptions: { module: 'node20', outDir: 'out', types: [], lib: ['es2022', 'dom'] },
          include: ['*.ts'],
        }),
      };
      const run = `${UNTOUCHED} && "$HOME/compiler/tsc" -p . && node out/app.js > said`;
      expect(await said({ files, build: { run }, inputs: [lowest, middle], home: { compiler } })).toBe('core on base\n');
    },
    TEST_MS,
  );

  test(
    'bring what an input needs of others, and not that input from elsewhere',
    async () => {
      const lowest = await inputOf({
        artifact: { npm: '.' },
        // A name that somebody else has published too.
        files: { 'package.json': packageJson('is-odd'), 'index.js': 'exports.y = "ours";' },
      });
      const middle = await inputOf({
        artifact: { npm: '.' },
        files: {
          'package.json': JSON.stringify({ name: '@mesh/core', version: '1.0.0', dependencies: { 'is-odd': '^3.0.0', picocolors: '1.1.1' } }),
          'index.js': 'exports.x = [require("is-odd").y, typeof require("picocolors").red];',
        },
        inputs: [lowest],
      });
      const files = { 'app.js': 'console.log(require("@mesh/core").x.join())' };
      expect(await said({ files, build: { run: `${UNTOUCHED} && node app.js > said` }, inputs: [lowest, middle] })).toBe('ours,function\n');
    },
    TEST_MS,
  );

  test('name what they did not find', async () => {
    const files = { 'app.js': 'require("@mesh/core/deep")', 'app.mjs': 'import "other"' };
    const { answer } = await build({ artifact: { file: 'said' }, files, build: { run: 'node app.mjs || node app.js' } });
    expect(answer).toMatchObject({ outcome: 'failed', missing: [{ name: 'other' }, { language: 'npm', name: '@mesh/core' }] });
  });
});

describe('Python', () => {
  // No index and no build backend is needed for what a wheel is.
  const wheel = (name: string, code: string): Module => ({
    artifact: { wheel: 'dist/*.whl' },
    files: {
      [`${name}/__init__.py`]: code,
      'wheel.py': [
        'import os, zipfile',
        'os.makedirs("dist")',
        `with zipfile.ZipFile("dist/${name}-1.0-py3-none-any.whl", "w") as z:`,
        `    z.write("${name}/__init__.py")`,
        `    z.writestr("${name}-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: ${name}\\nVersion: 1.0\\n")`,
        `    z.writestr("${name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")`,
        `    z.writestr("${name}-1.0.dist-info/RECORD", "")`,
      ].join('\n'),
    },
    build: { run: 'python3 wheel.py' },
  });

  test(
    'finds wheels of the mesh, and what they build on, on its path, as installed',
    async () => {
      const lowest = await inputOf(wheel('mesh_base', 'Y = "base"\n'));
      const middle = await inputOf({ ...wheel('mesh_core', 'from mesh_base import Y\nX = "core on " + Y\n'), inputs: [lowest] });
      const files = { 'app.py': 'from importlib.metadata import version\nfrom mesh_core import X\nprint(X, version("mesh-core"))\n' };
      const run = `${UNTOUCHED} && python3 app.py > said`;
      expect(await said({ files, build: { run }, inputs: [lowest, middle] })).toBe('core on base 1.0\n');
    },
    TEST_MS,
  );

  test('names what it did not find', async () => {
    const { answer } = await build({ artifact: { file: 'said' }, files: { 'app.py': 'import mesh_core.deep\n' }, build: { run: 'python3 app.py' } });
    const names = ['mesh_core', 'mesh_core.deep'].map((name) => ({ language: 'python', name }));
    expect('missing' in answer ? (answer.missing ?? []) : []).toEqual(expect.arrayContaining(names.slice(0, 1)));
  });
});

describe('Rust', () => {
  const cargo = (name: string, dependency?: string): string =>
    `[package]\nname = "${name}"\nversion = "0.1.0"\nedition = "2021"\n${dependency === undefined ? '' : `[dependencies]\n${dependency} = "*"\n`}`;

  test(
    'finds crates of the mesh, and what they build on, by a config above the tree, with the lock as it is',
    async () => {
      const lowest = await inputOf({
        artifact: { crate: '.' },
        files: { 'Cargo.toml': cargo('mesh-base'), 'src/lib.rs': 'pub fn y() -> &\'static str { "base" }\n' },
      });
      const middle = await inputOf({
        artifact: { crate: '.' },
        files: { 'Cargo.toml': cargo('mesh-core', 'mesh-base'), 'src/lib.rs': 'pub fn x() -> String { format!("core on {}", mesh_base::y()) }\n' },
        inputs: [lowest],
      });
      const entry = (name: string, dependency?: string): string =>
        `\n[[package]]\nname = "${name}"\nversion = "0.1.0"\n${dependency === undefined ? '' : `dependencies = [\n "${dependency}",\n]\n`}`;
      const lock = `# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 4\n${entry('app', 'mesh-core')}${entry('mesh-base')}${entry('mesh-core', 'mesh-base')}`;
      const files = { 'Cargo.toml': cargo('app', 'mesh-core'), 'Cargo.lock': lock, 'src/main.rs': 'fn main() { print!("{}", mesh_core::x()); }\n' };
      const run = `${UNTOUCHED} && cargo run --locked > said && git diff --exit-code`;
      expect(await said({ files, build: { run, env: toolchain() }, inputs: [lowest, middle] })).toBe('core on base');
    },
    TEST_MS,
  );

  test(
    'names what it did not find',
    async () => {
      const files = { 'Cargo.toml': cargo('app', 'mesh-core'), 'src/main.rs': 'fn main() {}\n' };
      const { answer } = await build({ artifact: { file: 'said' }, files, build: { run: 'cargo build', env: toolchain() } });
      expect(answer).toMatchObject({ outcome: 'failed', missing: [{ language: 'rust', name: 'mesh_core' }] });
    },
    TEST_MS,
  );

  /** Where the tool chain was installed for one user alone, a command with another home is told. */
  function toolchain(): Record<string, string> {
    return { RUSTUP_HOME: process.env.RUSTUP_HOME ?? join(process.env.HOME ?? '/root', '.rustup') };
  }
});

describe('an input', () => {
  test('that the registry holds as something else, or not at all, leaves the build outstanding', async () => {
    const input = await inputOf({ artifact: { go: '.' }, files: { 'go.mod': 'module example.com/base\n' } });
    const { answer } = await build({ artifact: { file: 'module.yaml' }, files: {}, inputs: [{ ...input, kind: 'crate' }] });
    expect(answer).toMatchObject({
      outcome: 'environment',
      step: 'inputs',
      reason: expect.stringContaining('is another artifact than was asked for'),
    });
    const gone = { ...input, digest: `sha256:${'0'.repeat(64)}` };
    const { answer: other } = await build({ artifact: { file: 'module.yaml' }, files: {}, inputs: [gone] });
    expect(other).toMatchObject({ outcome: 'environment', step: 'inputs', reason: expect.stringContaining('does not hold artifact') });
  });
});

describe('a build that is checked', () => {
  test('names the file that came out otherwise', async () => {
    const run = 'mkdir out && date +%s%N > out/time && echo same > out/same';
    const { answer } = await build({ artifact: { archive: 'out' }, files: {}, build: { run }, check: true });
    expect(answer).toMatchObject({ outcome: 'fit', check: { differing: [{ artifact: 'a', file: 'time' }] } });
  });

  test('begins from an empty home in another place, and names nothing when all is the same', async () => {
    const { answer } = await build({
      artifact: { file: 'said' },
      files: {},
      build: { run: 'ls -A $HOME; touch $HOME/used; echo same > said' },
      check: true,
    });
    expect(answer).toMatchObject({ outcome: 'fit', check: { differing: [] } });
    expect(mesh.control.linesOf(answer.request)).not.toContain('used');
  });
});

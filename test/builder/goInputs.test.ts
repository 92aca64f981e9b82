import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { layGo } from '../../src/builder/inputs/go';
import { sourceTree } from '../../src/imports/tree';
import { ArchiveRefused, packFiles } from '../../src/pack';
import { programs, removeRepositories, repository } from '../imports/repository';
import { removeScratch, scratch } from './scratch';

/** What stands in the workspace that is laid for a tree and its inputs, as Go reads it. */

afterAll(() => {
  removeScratch();
  removeRepositories();
});

const READ_MS = 120_000;
const APP = 'module example.com/app\n\ngo 1.21\n';

interface Module {
  Module?: { Path: string };
  Go?: string;
  Use?: Array<{ DiskPath: string }> | null;
  Replace?: Array<{ Old: Version; New: Version }> | null;
}
interface Version {
  Path: string;
  Version?: string;
}

interface LaidOut {
  /** What was said instead. */
  refused: string | null;
  go: string | undefined;
  uses: string[];
  replaces: string[];
  workspace: string;
  /** The go.mod of each input. */
  given: string[];
  givenReplaces: string[][];
}

/** @param given the go.mod of each input `m-0/a`, `m-1/a`, … */
async function lay(files: Record<string, string>, ...given: string[]): Promise<LaidOut> {
  const directory = scratch();
  const signal = AbortSignal.timeout(READ_MS);
  const place = {
    ...{ directory: join(directory, 'inputs'), inside: '/tmp/inputs', tmp: join(directory, 'tmp') },
    tree: await sourceTree(repository(files), signal),
    reading: { signal, cache: programs },
  };
  for (const made of [place.directory, place.tmp]) mkdirSync(made);
  const inputs = await Promise.all(given.map((text, at) => inputOf(directory, `m-${at}`, text)));
  const laid = await layGo(inputs, place).catch((error: unknown) => {
    if (error instanceof ArchiveRefused) return error.message;
    throw error;
  });
  if (typeof laid === 'string') return { refused: laid, go: '', uses: [], replaces: [], workspace: '', given: [], givenReplaces: [] };
  expect(laid).toEqual({ env: { GOWORK: '/tmp/workspace/go.work' } });
  const path = join(place.tmp, 'workspace', 'go.work');
  const work = asGoReads('work', path);
  const unpacked = given.map((_, at) => join(place.directory, 'go', `m-${at}`, 'a', 'go.mod'));
  return {
    refused: null,
    go: work.Go,
    uses: (work.Use ?? []).map(({ DiskPath }) => DiskPath),
    replaces: replacesOf(work),
    workspace: readFileSync(path, 'utf8'),
    given: unpacked.map((one) => readFileSync(one, 'utf8')),
    givenReplaces: unpacked.map((one) => replacesOf(asGoReads('mod', one))),
  };
}

async function inputOf(directory: string, module: string, goMod: string) {
  const root = join(directory, 'sources', module);
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, 'go.mod'), goMod);
  const file = join(directory, `${module}.tar.gz`);
  await packFiles(root, ['go.mod'], file);
  const place = { repository: `tally/${module}`, digest: `sha256:${'0'.repeat(64)}`, blob: `sha256:${'1'.repeat(64)}`, size: 1 };
  return { input: { ...place, module, artifact: 'a', kind: 'go' as const, commit: 'a'.repeat(40), names: [], test: false }, file };
}

function asGoReads(verb: 'mod' | 'work', path: string): Module {
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off', GOFLAGS: '' };
  return JSON.parse(execFileSync('go', [verb, 'edit', '-json', path], { env, cwd: dirname(path), encoding: 'utf8', timeout: READ_MS })) as Module;
}

function replacesOf({ Replace }: Module): string[] {
  const shown = ({ Path, Version }: Version): string => (Version === undefined ? Path : `${Path}@${Version}`);
  return (Replace ?? []).map(({ Old, New }) => `${shown(Old)} => ${shown(New)}`);
}

const CORE = 'module example.com/core\n\ngo 1.22\n';
const USES_CORE = ['/tmp/build', '/tmp/inputs/go/m-0/a'];
const CORE_ASKED = 'example.com/core@v1.2.3 => /tmp/inputs/go/m-0/a';

describe('the module file of an input', () => {
  test('loses its replacements, whatever stands in their comments, and nothing else', async () => {
    const rest = [
      'module "example.com/core" // the (main) one )',
      'go 1.22 // replace nothing',
      'toolchain go1.22.1',
      'godebug (\n\thttp2client=0 // )\n)',
      'require (\n\t"example.com/base" v1.0.0 // indirect )\n) // )',
      'exclude example.com/base v0.9.0',
      '// replace example.com/kept => ../kept',
      'retract [v1.0.0, v1.1.0] // bad )',
    ];
    const text = [...rest, 'replace (\n\texample.com/base v1.0.0 => ../b // ours (for now) and later\n\t"example.com/x" => "../x y"\n)'];
    const laid = await lay({ 'go.mod': APP }, `${text.join('\n\n')}\n`, 'module example.com/base\n');
    expect(laid.refused).toBeNull();
    expect(laid.givenReplaces).toEqual([[], []]);
    for (const kept of ['toolchain go1.22.1', 'http2client=0', 'example.com/base v0.9.0', 'retract [v1.0.0, v1.1.0]', '// bad )'])
      expect(laid.given[0]).toContain(kept);
    expect(laid.replaces).toEqual(['example.com/base@v1.0.0 => /tmp/inputs/go/m-1/a']);
  });

  test('may end its lines as another system does', async () => {
    const text =
      'module example.com/core\r\n\r\ngo 1.22.5\r\n\r\nreplace (\r\n\texample.com/x => ../x // :)\r\n)\r\n\r\nrequire example.com/base v1.0.0\r\n';
    const laid = await lay({ 'go.mod': APP.replaceAll('\n', '\r\n') }, text, 'module example.com/base\r\n');
    expect(laid).toMatchObject({ go: '1.22.5', givenReplaces: [[], []], replaces: ['example.com/base@v1.0.0 => /tmp/inputs/go/m-1/a'] });
  });

  test.each([
    ['is none that Go reads', 'module `example.com/core`\n', /^input m-0\/a has a go\.mod that Go does not read: line 1: .*quote/],
    ['names no module', 'go 1.22\n', /^input m-0\/a has a go\.mod that names no module$/],
  ])('that %s is refused by its name', async (_, text, refused) => {
    expect((await lay({ 'go.mod': APP }, text)).refused).toMatch(refused);
  });
});

describe('a tree without a workspace', () => {
  test('is asked for versions in whatever form they stand', async () => {
    const requires = [
      `${APP}require (\n\t// example.com/core v1.0.0\n\t"example.com/core" v1.2.3 // indirect )\n)\n`,
      `${APP}require "example.com/\\u0063ore" v1.2.3 //)\n`,
      `${APP}require(\nexample.com/core v1.2.3\n)// (\n`,
    ];
    for (const text of requires) expect(await lay({ 'go.mod': text }, CORE)).toMatchObject({ uses: USES_CORE, replaces: [CORE_ASKED], go: '1.22' });
  });

  test('may say no version of Go', async () => {
    expect(await lay({ 'go.mod': 'module example.com/app\n' }, 'module example.com/core\n')).toMatchObject({ go: '1.18', uses: USES_CORE });
  });

  test.each([
    ['1.9', '1.21', '1.21'],
    ['1.22', '1.22rc1', '1.22rc1'],
    ['1.22rc2', '1.22beta1', '1.22rc2'],
    ['1.22rc1', '1.22.0', '1.22.0'],
    ['1.22.10', '1.22.9', '1.22.10'],
  ])('has the newer of Go %s and %s, as Go counts them', async (one, other, newer) => {
    for (const [mine, given] of [
      [one, other],
      [other, one],
    ])
      expect((await lay({ 'go.mod': `module example.com/app\ngo ${mine} // or so\n` }, `module example.com/core\ngo ${given}\n`)).go).toBe(newer);
  });

  test('keeps how its program is to run, which Go takes from a workspace alone', async () => {
    const laid = await lay(
      { 'go.mod': `${APP}godebug (\n\thttp2client=0\n)\n`, 'tool/go.mod': 'module example.com/tool\ngodebug panicnil=1\n' },
      CORE,
    );
    expect(laid.workspace).toContain('godebug http2client=0');
    expect(laid.workspace).not.toContain('panicnil');
  });

  test('has no module that Go does not read in its workspace, but the one at its root, of which Go itself is to say so', async () => {
    const template = 'module {{ .Name }}\n';
    expect((await lay({ 'go.mod': APP, 'template/go.mod': template }, CORE)).uses).toEqual(USES_CORE);
    expect((await lay({ 'go.mod': template, 'lib/go.mod': 'module example.com/lib\n' }, CORE)).uses).toEqual([
      '/tmp/build',
      '/tmp/build/lib',
      '/tmp/inputs/go/m-0/a',
    ]);
  });
});

describe('a tree with a workspace', () => {
  const modules = {
    'a/go.mod': `${APP}require example.com/core v1.2.3\n`,
    'b c/go.mod': 'module example.com/b\n',
    'other/go.mod': 'module example.com/o\n',
  };

  test('has its modules in the one that is laid, in whatever form they stand, and what else it says', async () => {
    const work = [
      'go 1.23.4 // )',
      'toolchain go1.24.0',
      'godebug http2client=0',
      'use (\n\t./a/ // the first )\n\t"./b c"\n)',
      'use ../outside',
      'replace (\n\texample.com/x v1.0.0 => "./x y" // )\n\texample.com/z => example.com/y v1.1.0\n)',
    ];
    for (const ending of ['\n', '\r\n']) {
      const laid = await lay({ ...modules, 'go.work': `${work.join('\n')}\n`.replaceAll('\n', ending) }, CORE);
      expect(laid).toMatchObject({
        go: '1.23.4',
        uses: ['/tmp/build/a', '/tmp/build/b c', '/tmp/inputs/go/m-0/a'],
        replaces: [CORE_ASKED, 'example.com/x@v1.0.0 => /tmp/build/x y', 'example.com/z => example.com/y@v1.1.0'],
      });
      expect(laid.workspace).toContain('toolchain go1.24.0');
      expect(laid.workspace).toContain('godebug http2client=0');
    }
  });

  test('does not replace an input, which is in the workspace', async () => {
    const work = 'go 1.22\nuse ./a\nreplace example.com/core => ../core\nreplace example.com/core v1.2.3 => ../core\n';
    expect((await lay({ ...modules, 'go.work': work }, CORE)).replaces).toEqual([CORE_ASKED]);
  });

  test('that Go does not read is named, with its words', async () => {
    expect((await lay({ ...modules, 'go.work': 'go 1.22\nuse ( ./a ./b )\n' }, CORE)).refused).toMatch(/^go\.work:2: usage: use local\/dir$/);
  });

  test('keeps a module of which Go itself is to say that it does not read it', async () => {
    const laid = await lay({ 'a/go.mod': 'module {{ .Name }}\n', 'go.work': 'go 1.22\nuse ./a\n' }, CORE);
    expect(laid.uses).toEqual(['/tmp/build/a', '/tmp/inputs/go/m-0/a']);
  });
});

test('a tree of more modules than are read is told to name those that it wants', async () => {
  const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`m${at}/go.mod`, `module example.com/m${at}\n`]));
  expect((await lay(many, CORE)).refused).toBe(
    '1001 modules are to be in one Go workspace, which has room for 1000: name those that are needed in a go.work',
  );
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { deriveGraph } from '../../src/imports';
import { type Derived, derive, type Files, importsOf, manifestWith, removeRepositories, repository } from './repository';

const cold = mkdtempSync(join(tmpdir(), 'tally-programs-'));

afterAll(() => {
  removeRepositories();
  rmSync(cold, { recursive: true, force: true });
});

const REPOSITORIES = 500;
const AT_ONCE = 4;
const WITHIN_MS = 600_000;
/** Each fifth is of Python, whose start takes longer. */
const PYTHON_EACH = 5;

test(
  'five hundred repositories give the same graph with nothing compiled yet and with all there',
  async () => {
    const roots = Array.from({ length: REPOSITORIES }, (_, n) => repository(filesOf(n)));
    const first = await graphOf(roots, cold);
    expect(await graphOf(roots.toReversed(), cold)).toEqual(first.toReversed());
    expect(first[0]).toEqual(['exports example.com/m0', 'imports example.com/m1/p', 'imports example.com/m3']);
    expect(first[1]).toEqual(['exports m1', 'imports m10.part', 'imports m2']);
    expect(first.flat()).toHaveLength(REPOSITORIES * 3);
  },
  WITHIN_MS,
);

function filesOf(n: number): Files {
  const next = n + 1;
  const other = n * 7 + 3;
  if (n % PYTHON_EACH !== 1)
    return {
      'go.mod': `module example.com/m${n}\n`,
      'a.go': `package a\n\nimport "fmt"\nimport "example.com/m${next}/p"\n\nconst s = \`import "example.com/none"\`\n`,
      'b/b_linux.go': `package b\n\nimport "example.com/m${n}"\nimport "example.com/m${other}"\n`,
    };
  return {
    'pyproject.toml': `[project]\nname = "m${n}"\n`,
    [`m${n}/__init__.py`]: `import os\nimport m${next}\n"""\nimport none\n"""\n`,
    [`m${n}/part.py`]: `from . import x\ndef f():\n    from m${other} import part\n`,
  };
}

async function graphOf(roots: readonly string[], cache: string): Promise<string[][]> {
  const found: string[][] = [];
  let at = 0;
  const work = async (): Promise<void> => {
    while (at < roots.length) {
      const n = at;
      at += 1;
      const artifacts: Record<string, Record<string, string>> = { go: { go: '.' }, wheel: { wheel: 'dist/*.whl' } };
      const derived = await deriveGraph(roots[n] ?? '', manifestWith(artifacts), { signal: AbortSignal.timeout(WITHIN_MS), cache });
      found[n] = edgesOf(derived);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

function edgesOf({ exports, imports }: Derived): string[] {
  return [...exports.map(({ name }) => `exports ${name}`), ...imports.map(({ name }) => `imports ${name}`)];
}

/** What stands around an import and looks like one, as each language lets it. */
const words = fc.stringMatching(/^[a-z "'(){}*/#\\$=:;.,0-9]{0,30}$/);
const lookalike = fc.constantFrom(
  'import "example.com/none"',
  'import none',
  'from none import none',
  '__import__("none")',
  'importlib.import_module("none")',
);
const text = fc.array(fc.oneof(words, lookalike), { maxLength: 4 }).map((parts) => parts.join(' '));

const go = {
  lineComment: text.map((said) => `// ${said}`),
  blockComment: text.map((said) => `/*\n${said.replaceAll('*/', '')}\n${said.replaceAll('*/', '')} */`),
  rawString: text.map((said) => `const _ = \`\n${said}\n\``),
  string: text.map((said) => `const _ = ${JSON.stringify(said)}`),
};

const python = {
  comment: text.map((said) => `# ${said}`),
  string: text.map((said) => `_ = ${JSON.stringify(said)}`),
  long: text.map((said) => `"""\n${said.replaceAll('\\', '').replaceAll('"', '')}\n"""`),
  bytes: text.map((said) => `_ = b'''\n${said.replaceAll('\\', '').replaceAll("'", '')}\n'''`),
};

/** Many files a run: the processes cost more than the files. */
const FILES_OF_RUN = 60;

test('what stands in comments and strings adds no edge and takes none away', async () => {
  const goFile = fc.record({
    before: fc.array(fc.oneof(go.lineComment, go.blockComment), { maxLength: 3 }),
    between: fc.array(fc.oneof(go.lineComment, go.blockComment), { maxLength: 3 }),
    after: fc.array(fc.oneof(go.lineComment, go.blockComment, go.rawString, go.string), { maxLength: 4 }),
  });
  const some = fc.array(fc.oneof(python.comment, python.string, python.long, python.bytes), { maxLength: 4 });
  const pythonFile = fc.record({ before: some, after: some });
  const tree = fc.record({
    goFiles: fc.array(goFile, { minLength: FILES_OF_RUN, maxLength: FILES_OF_RUN }),
    pythonFiles: fc.array(pythonFile, { minLength: FILES_OF_RUN, maxLength: FILES_OF_RUN }),
  });
  await fc.assert(
    fc.asyncProperty(tree, async ({ goFiles, pythonFiles }) => {
      const files: Files = {};
      const wanted: string[] = [];
      goFiles.forEach(({ before, between, after }, n) => {
        const head = [...before, 'package p', ...between].join('\n');
        files[`f${n}.go`] = `${head}\nimport "example.com/n${n}"\n${after.join('\n')}\n`;
        wanted.push(`example.com/n${n} f${n}.go:${head.split('\n').length + 1}`);
      });
      pythonFiles.forEach(({ before, after }, n) => {
        const head = ['', ...before];
        files[`p${n}.py`] = `${head.join('\n')}\nimport n${n}\n${after.join('\n')}\n`;
        wanted.push(`n${n} p${n}.py:${head.join('\n').split('\n').length + 1}`);
      });
      const found = await derive(files);
      removeRepositories();
      expect(found.unknown).toEqual([]);
      expect(importsOf(found).sort()).toEqual(wanted.sort());
    }),
    { numRuns: 5 },
  );
}, 120_000);

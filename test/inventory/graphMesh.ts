/** Modules with code, as an inspection would tell of it, and builders that build what is asked for: what the tests of the graph speak in. */
import { addModule, type Db, openBuild, openInspection, readFacts, recordAnswer } from '../../src/inventory';
import type { Answer, ExportedName, ImportedName, Input, UnknownImport } from '../../src/schema/messages';
import { commitOf, digest, failed, fitAnswer, read, tick, times, valid } from './store';

export interface Code {
  /** Names of Go packages, each of the artifact `NAME` in `NAME=package`, else of `out`. */
  readonly exports?: readonly string[];
  /** Go import paths; those that only tests import begin with `test:`. */
  readonly imports?: readonly string[];
  /** Files that cannot be parsed. */
  readonly unparsed?: readonly string[];
}

/** Every prefix at a `/`, the longest first; one before a version is of another package. */
function goCandidates(path: string): string[] {
  const parts = path.split('/');
  return parts
    .map((_, index) => parts.length - index)
    .filter((length) => !/^v([2-9]|\d\d+)$/.test(parts[length] ?? ''))
    .map((length) => parts.slice(0, length).join('/'));
}

const exported = (text: string): ExportedName => {
  const [artifact = 'out', name] = text.includes('=') ? text.split('=') : ['out', text];
  return { language: 'go', name: name ?? text, artifact, file: 'go.mod', line: 1 };
};

const imported = (text: string, index: number): ImportedName => {
  const test = text.startsWith('test:');
  const name = text.replace(/^test:/, '');
  return { language: 'go', name, candidates: goCandidates(name), test, file: test ? 'a_test.go' : 'a.go', line: index + 1 };
};

export function namesOf({ exports = [], imports = [], unparsed = [] }: Code): {
  exports: ExportedName[];
  imports: ImportedName[];
  unknown: UnknownImport[];
} {
  return {
    exports: exports.map(exported),
    imports: imports.map(imported),
    unknown: unparsed.map((file) => ({ kind: 'unparsed', file, line: 3, reason: 'expected )' })),
  };
}

export async function inspectCode(db: Db, module: string, commit: string, code: Code): Promise<void> {
  const id = await openInspection(db, module, commit);
  if (id === null) return;
  await recordAnswer(db, { ...valid(id, { module }), ...namesOf(code) } as Answer, tick(), times);
}

/** The module is there, its head is that commit (a letter) and inspected. */
export async function moduleWith(db: Db, module: string, letter: string, code: Code): Promise<void> {
  const there = await db.query('select from module where name = $1', [module]);
  if (there.length === 0) await addModule(db, { name: module, repository: `file:///${module}.git`, ref: 'main' });
  await read(db, module, commitOf(letter));
  await inspectCode(db, module, commitOf(letter), code);
}

export interface Opened {
  readonly id: string;
  readonly inputs: readonly Input[];
}

/** Asks for a build of the head's closure as it is now. */
export async function open(db: Db, module: string): Promise<Opened> {
  const [row] = await db.query<{ commit: string; closure: string | null }>('select head_commit as commit, closure from module where name = $1', [
    module,
  ]);
  if (row === undefined || row.closure === null) throw new Error(`${module} has no closure`);
  const id = await openBuild(db, { module, commit: row.commit, closure: row.closure, platform: 'linux-amd64', askedBy: null });
  if (id === null) throw new Error(`no build of ${module} can be opened`);
  const [request] = await db.query<{ inputs: Input[] }>(`select body -> 'inputs' as inputs from request where id = $1`, [id]);
  return { id, inputs: request?.inputs ?? [] };
}

/** Artifacts by name, each with what its digest is made from. */
export async function answerFit(db: Db, opened: Opened, content: string | Readonly<Record<string, string>>): Promise<void> {
  const contents = typeof content === 'string' ? { out: content } : content;
  const artifacts = Object.entries(contents).map(([name, text]) => ({
    name,
    kind: 'go' as const,
    repository: `tally/${name}`,
    digest: digest(text),
    blob: digest(`blob of ${text}`),
    size: text.length,
  }));
  await recordAnswer(db, fitAnswer(opened.id, { artifacts, inputs: [...opened.inputs] }), tick(), times);
}

export async function answerFailed(db: Db, opened: Opened): Promise<void> {
  await recordAnswer(db, failed(opened.id, { inputs: [...opened.inputs] }), tick(), times);
}

export async function buildFit(db: Db, module: string, content: string | Readonly<Record<string, string>> = module): Promise<string> {
  const opened = await open(db, module);
  await answerFit(db, opened, content);
  return opened.id;
}

export async function buildFailed(db: Db, module: string): Promise<void> {
  await answerFailed(db, await open(db, module));
}

export async function factsOf(db: Db, module: string): Promise<NonNullable<Awaited<ReturnType<typeof readFacts>>>> {
  const facts = await readFacts(db, module, tick(), times);
  if (facts === null) throw new Error(`no facts of ${module}`);
  return facts;
}

/** `a → b (out)`, those of tests with a `?`. */
export async function edges(db: Db): Promise<string[]> {
  const rows = await db.query<{ edge: string }>(
    `select module || case when is_test then ' → ? ' else ' → ' end || input || ' (' || artifact || ')' as edge from build_edge`,
  );
  return [...new Set(rows.map((row) => row.edge))].sort();
}

/** `b/out` of the closure of the head, those of tests with a `?`. */
export async function inputs(db: Db, module: string): Promise<string[]> {
  return (await factsOf(db, module)).graph.inputs.map((input) => `${input.isTest ? '?' : ''}${input.module}/${input.artifact}`);
}

export async function isStale(db: Db, module: string): Promise<boolean> {
  return (await factsOf(db, module)).headBuild === null;
}

export async function stale(db: Db): Promise<string[]> {
  const rows = await db.query<{ name: string }>('select name from module where stale_since is not null order by name');
  return rows.map((row) => row.name);
}

/** The modules whose facts version `change` moved. */
export async function bumpedBy(db: Db, change: () => Promise<unknown>): Promise<string[]> {
  const versions = async (): Promise<Map<string, number>> =>
    new Map(
      (await db.query<{ name: string; version: number }>('select name, facts_version as version from module')).map((row) => [row.name, row.version]),
    );
  const before = await versions();
  await change();
  return [...(await versions())]
    .filter(([name, version]) => before.get(name) !== version)
    .map(([name]) => name)
    .sort();
}

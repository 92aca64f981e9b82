import { join } from 'node:path';
import { z } from 'zod';
import { EnvironmentError } from '../domain/errors';
import { isTestPath } from './paths';
import { pythonPackages } from './pythonPackages';
import { pythonProjects } from './pythonProjects';
import { howItEnded, runTool, type ToolEnd } from './run';
import { programsFolder, toolPath } from './tools';
import { type FoundImport, type LanguageFindings, nothingFound, type Reading, type SourceFile, type SourceTree } from './types';

/**
 * Python, read by the `ast` of the Python of this machine. Each import counts wherever it stands: in a function, in a `try`, behind
 * `TYPE_CHECKING`. What lies in the tree, and relative imports do, is nobody else's.
 */

const READ_TIMEOUT_MS = 300_000;
/** What has to be read within that time. */
const FILES_A_START = 2_000;
/** Files that end the parser itself. */
const MOST_ENDINGS = 10;

/** Module, dots before it, the name that is taken from it, line. */
const imported = z.tuple([z.string(), z.number(), z.string().nullable(), z.number()]);
const answer = z.object({
  imports: z.array(imported).default([]),
  computed: z.array(z.tuple([z.number(), z.string()])).default([]),
  trouble: z.object({ line: z.number(), reason: z.string() }).optional(),
});
type Answer = z.infer<typeof answer>;

export async function readPython(tree: SourceTree, reading: Reading): Promise<LanguageFindings> {
  const projects = await pythonProjects(tree);
  const asked = tree.own.filter(({ path }) => /\.py[iw]?$/.test(path));
  if (asked.length === 0) return { ...nothingFound, ...projects };
  const { answers, standard } = await askProgram(tree, asked, reading);
  const packages = pythonPackages(tree, projects.declared);

  const unknown = [...projects.unknown];
  const imports: FoundImport[] = [];
  for (const [at, { path }] of asked.entries()) {
    const said = answers[at];
    if (said === undefined) continue;
    const test = isTestPath(path);
    if (said.trouble !== undefined) unknown.push({ kind: 'unparsed', file: path, ...said.trouble });
    for (const [line, reason] of said.computed) unknown.push({ kind: 'computed', file: path, line, reason });
    for (const [module, level, taken, line] of said.imports) {
      const first = module.split('.', 1)[0] ?? '';
      if (level > 0 || first === '' || (standard.has(first) && !packages.isOwn(path, first))) continue;
      const name = taken === null || taken === '*' ? module : `${module}.${taken}`;
      if (!packages.isInTree(path, name)) imports.push({ name, candidates: candidatesOf(name), test, file: path, line });
    }
  }
  return { declared: projects.declared, imports, unknown, notes: packages.notes() };
}

/** The longest first: of `from a import b` nobody knows whether `b` is a module. */
function candidatesOf(name: string): string[] {
  const parts = name.split('.');
  return parts.map((_, at) => parts.slice(0, parts.length - at).join('.')).slice(-64);
}

interface Answers {
  answers: Answer[];
  standard: Set<string>;
}

/** A file that ends the program is said to be unparsed, and the program is started again for those after it. */
async function askProgram(tree: SourceTree, files: readonly SourceFile[], reading: Reading): Promise<Answers> {
  const answers: Answer[] = [];
  const standard = new Set<string>();
  let endings = 0;
  while (answers.length < files.length) {
    const batch = files.slice(answers.length, answers.length + FILES_A_START);
    const end = await startProgram(tree, batch, reading);
    const [first, ...lines] = end.stdout.toString().split('\n').slice(0, -1);
    if (first === undefined || end.endedBy === 'timeout') throw failed(end);
    for (const name of z.object({ standard: z.array(z.string()) }).parse(JSON.parse(first)).standard) standard.add(name);
    for (const line of lines) answers.push(answer.parse(JSON.parse(line)));
    if (lines.length === batch.length) continue;
    if (end.status !== null) throw failed(end);
    // The first of a start is tried again with nothing before it, whose memory or time would count against it.
    if (lines.length > 0) continue;
    const reason = end.endedBy === 'SIGVTALRM' ? 'it takes longer than 20 s to be parsed' : `it ends the parser (${end.endedBy ?? 'unknown'})`;
    answers.push(unparsed(reason));
    endings += 1;
    if (endings < MOST_ENDINGS) continue;
    answers.push(...files.slice(answers.length).map(() => unparsed(`it was not read: ${endings} files before it ended the parser`)));
  }
  return { answers, standard };
}

function unparsed(reason: string): Answer {
  return { imports: [], computed: [], trouble: { line: 1, reason } };
}

/** Not in the tree, where a version manager would heed a file of it. `-I -S`: nothing of the tree or of this account is on its path. */
async function startProgram(tree: SourceTree, files: readonly SourceFile[], reading: Reading): Promise<ToolEnd> {
  const folder = programsFolder();
  const home = process.env.HOME;
  const end = await runTool({
    command: 'python3',
    args: ['-I', '-S', join(folder, 'python_imports.py'), tree.root],
    cwd: folder,
    env: { PATH: toolPath(), LC_ALL: 'C.UTF-8', ...(home === undefined ? {} : { HOME: home }) },
    stdin: Buffer.concat(files.flatMap(({ raw }) => [raw, Buffer.of(0)])),
    timeoutMs: READ_TIMEOUT_MS,
    signal: reading.signal,
  });
  if (end === null) {
    throw new EnvironmentError('read what the Python code imports: there is no `python3` on the path of this builder: install Python 3.10 or newer');
  }
  return end;
}

function failed(end: ToolEnd): EnvironmentError {
  return new EnvironmentError(`read what the Python code imports: ${howItEnded(end, READ_TIMEOUT_MS)}`);
}

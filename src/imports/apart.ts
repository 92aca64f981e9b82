import { join } from 'node:path';
import { EnvironmentError } from '../domain/errors';
import type { Outcome, Request } from './parsing/types';
import { runTool } from './run';
import { packageFolder, toolPath } from './tools';
import type { SourceFile, SourceTree } from './types';

/** Parses files in a process apart, and says of one that ended it that it does not parse. */

/** What a process reads at most: its answer is held here as a whole. */
const MOST_FILES = 1_000;
const MOST_ANSWER_BYTES = 64 << 20;
const TIMEOUT_MS = 120_000;
/** Of the process; a file that needs more is not read. */
const MEMORY_MIB = 1_024;
/** Files that end the process; then the others are given up. */
const MOST_ENDINGS = 10;

interface Parsed<Use> {
  readonly path: string;
  readonly outcome: Outcome<Use>;
}

type Parser = Request['parser'];

/** @throws EnvironmentError when the process cannot do its work at all, or the signal says stop. */
export async function* parsedApart<Use>(
  parser: Parser,
  tree: SourceTree,
  files: readonly SourceFile[],
  signal: AbortSignal,
): AsyncGenerator<Parsed<Use>> {
  let endings = 0;
  for (let from = 0; from < files.length; ) {
    const batch = files.slice(from, from + MOST_FILES);
    const { outcomes, endedBy } = await run<Use>(parser, tree, batch, signal);
    for (const [at, outcome] of outcomes.entries()) yield { path: batch[at]?.path ?? '', outcome };
    from += outcomes.length;
    const next = files[from];
    // One that was among others is tried again alone, so that no time or memory of theirs counts against it.
    if (endedBy === null || outcomes.length > 0 || next === undefined) continue;
    endings += 1;
    yield { path: next.path, outcome: unread(`it ended the parser by ${endedBy}`) };
    from += 1;
    if (endings < MOST_ENDINGS || from === files.length) continue;
    const reason = `${files.length - from} files from here on are not read: ${endings} files before ended the parser`;
    yield { path: files[from]?.path ?? '', outcome: unread(reason) };
    return;
  }
}

function unread<Use>(reason: string): Outcome<Use> {
  return { uses: [], computed: [], broken: { line: 1, reason } };
}

async function run<Use>(parser: Parser, tree: SourceTree, files: readonly SourceFile[], signal: AbortSignal) {
  const request: Request = { parser, root: tree.root, files: files.map(({ path, raw }) => ({ path, raw: raw.toString('base64') })) };
  const ended = await runTool({
    command: 'sh',
    // A parser that a file ends leaves no image of its memory behind.
    args: [
      '-c',
      'ulimit -c 0; exec "$0" "$@"',
      process.execPath,
      `--max-old-space-size=${MEMORY_MIB}`,
      join(packageFolder(), 'dist', 'src', 'imports', 'parsing', 'main.js'),
    ],
    cwd: '/',
    env: { PATH: toolPath() },
    stdin: Buffer.from(JSON.stringify(request)),
    timeoutMs: TIMEOUT_MS,
    signal,
    mostBytes: MOST_ANSWER_BYTES,
  });
  if (ended === null) throw new EnvironmentError('read the imports: there is no sh here');
  // The last line is whole only when a line end follows it.
  const [ready, ...lines] = ended.stdout.toString().split('\n').slice(0, -1);
  const isByError = ended.status !== null && ended.status !== 0;
  if (ready === undefined || isByError)
    throw new EnvironmentError(`read the imports of ${parser}: ${ended.stderr || `the parser ended by ${ended.endedBy}`}`);
  const endedBy = ended.status === 0 ? null : ended.endedBy;
  return { outcomes: lines.map((line) => JSON.parse(line) as Outcome<Use>), endedBy };
}

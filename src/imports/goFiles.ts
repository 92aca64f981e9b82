import { z } from 'zod';
import { EnvironmentError } from '../domain/errors';
import { goEnvironment, goProgram } from './goProgram';
import { howItEnded, runTool } from './run';
import type { Reading } from './types';

/** What Go itself says of .go, go.mod and go.work files, and what it changes in the latter two; it reads those files and nothing else. */

const READ_TIMEOUT_MS = 120_000;
const EDIT_TIMEOUT_MS = 30_000;
/** Of one command's arguments, and paths are long. */
const MOST_EDITS_AT_ONCE = 200;
/** Each go.mod or go.work is a start of the `go` command. */
export const MOST_MODULES = 1_000;

const imported = z.object({ path: z.string(), line: z.number() });
const trouble = z.object({ line: z.number(), reason: z.string() });
const version = z.object({ Path: z.string(), Version: z.string().optional() });

/** As `go mod edit -json` and `go work edit -json` have it. */
const goModule = z.object({
  Module: z.object({ Path: z.string() }).nullish(),
  Go: z.string().optional(),
  GoDebug: listOf(z.object({ Key: z.string(), Value: z.string() })),
  Require: listOf(z.object({ Path: z.string(), Version: z.string() })),
  Replace: listOf(z.object({ Old: version, New: version })),
  Tool: listOf(z.object({ Path: z.string() })),
  Use: listOf(z.object({ DiskPath: z.string() })),
});
export type GoModule = z.infer<typeof goModule>;

const answer = z.object({
  file: z.number(),
  imports: z.array(imported).default([]),
  /** Of a go.mod or a go.work without trouble. */
  module: goModule.optional(),
  lines: z.array(z.string()).default([]),
  trouble: trouble.optional(),
});
type GoAnswer = z.infer<typeof answer>;

/**
 * @param paths from `root` or absolute.
 * @returns what there is to say, by the number of the path and in their order; of a go.mod or go.work there is always something.
 * @throws EnvironmentError when there is no Go here, or it takes too long.
 */
export async function askGo(root: string, paths: readonly Buffer[], reading: Reading): Promise<Map<number, GoAnswer>> {
  const { path: command, env } = await goProgram(reading);
  const stdin = Buffer.concat(paths.flatMap((path) => [path, Buffer.of(0)]));
  const end = await runTool({ command, args: [], cwd: root, env, stdin, timeoutMs: READ_TIMEOUT_MS, signal: reading.signal });
  if (end === null) throw new EnvironmentError('read the Go code: the program that was compiled for it is gone: try again');
  if (end.status !== 0) throw new EnvironmentError(`read the Go code: ${howItEnded(end, READ_TIMEOUT_MS)}`);
  const lines = end.stdout.toString().split('\n').slice(0, -1);
  const answers = lines.map((line) => answer.parse(JSON.parse(line))).sort((a, b) => a.file - b.file);
  return new Map(answers.map((said) => [said.file, said]));
}

/**
 * By `go mod edit` or `go work edit`, which ask nobody and look at no other file. Of a file that Go reads; what it refuses then is not told from
 * a disk that is full.
 * @throws EnvironmentError when it did not, with Go's own words.
 */
export async function editGo(verb: 'mod' | 'work', file: string, edits: readonly string[], { cache, signal }: Reading): Promise<void> {
  const env = await goEnvironment(cache);
  for (let at = 0; at < edits.length; at += MOST_EDITS_AT_ONCE) {
    const args = [verb, 'edit', ...edits.slice(at, at + MOST_EDITS_AT_ONCE), file];
    const end = await runTool({ command: 'go', args, cwd: '/', env, timeoutMs: EDIT_TIMEOUT_MS, signal });
    if (end === null) throw new EnvironmentError(`lay out a go.${verb}: the go command is gone: try again`);
    if (end.status !== 0) throw new EnvironmentError(`lay out a go.${verb}: ${howItEnded(end, EDIT_TIMEOUT_MS)}`);
  }
}

/** Go writes null for a list without anything in it. */
function listOf<T extends z.ZodType>(of: T) {
  return z
    .array(of)
    .nullish()
    .transform((list) => list ?? []);
}

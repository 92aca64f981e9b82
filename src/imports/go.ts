import { z } from 'zod';
import { EnvironmentError } from '../domain/errors';
import type { UnknownImport } from '../schema/messages';
import { goModules, type ModuleFile } from './goModules';
import { goProgram } from './goProgram';
import { isTestPath, nameOf } from './paths';
import { howItEnded, runTool } from './run';
import { type FoundImport, type LanguageFindings, nothingFound, type Reading, type SourceFile, type SourceTree } from './types';

/**
 * Go, read by Go's own parser and not by `go list`, which leaves out what other build tags compile and the modules below another
 * one. A package that lies in the tree, or that a local `replace` or `vendor` brings there, is nobody else's.
 */

const READ_TIMEOUT_MS = 120_000;
/** Each is a start of the `go` command. */
const MOST_MODULES = 1_000;

const imported = z.object({ path: z.string(), line: z.number() });
const trouble = z.object({ line: z.number(), reason: z.string() });
/** What `go mod edit -json` and `go work edit -json` have in common with what is needed here. */
const moduleJson = z.object({
  Module: z.object({ Path: z.string() }).nullish(),
  Replace: z.array(z.object({ Old: z.object({ Path: z.string() }), New: z.object({ Path: z.string(), Version: z.string().optional() }) })).nullish(),
  Tool: z.array(z.object({ Path: z.string() })).nullish(),
});
const answer = z.object({
  file: z.number(),
  imports: z.array(imported).default([]),
  module: moduleJson.optional(),
  lines: z.array(z.string()).default([]),
  trouble: trouble.optional(),
});
type Answer = z.infer<typeof answer>;

export async function readGo(tree: SourceTree, reading: Reading): Promise<LanguageFindings> {
  const sources = tree.own.filter(({ path }) => isSource(path));
  const moduleFiles = tree.own.filter(({ path }) => isModuleFile(path));
  if (sources.length + moduleFiles.length === 0) return nothingFound;
  const answers = await askProgram(tree, [...moduleFiles.slice(0, MOST_MODULES), ...sources], reading);

  const unknown: UnknownImport[] = [];
  for (const { path } of moduleFiles.slice(MOST_MODULES, MOST_MODULES + 1))
    unknown.push({
      kind: 'unparsed',
      file: path,
      line: 1,
      reason: `only the first ${MOST_MODULES} of ${moduleFiles.length} go.mod and go.work files are read`,
    });
  const modules: ModuleFile[] = [];
  for (const { path, said } of answers) {
    if (said.trouble !== undefined) unknown.push({ kind: 'unparsed', file: path, ...said.trouble });
    if (said.module === undefined) continue;
    const { Module, Replace, Tool } = said.module;
    modules.push({
      file: path,
      lines: said.lines,
      name: Module?.Path ?? null,
      replaced: (Replace ?? []).filter(({ New }) => New.Version === undefined).map(({ Old, New }) => ({ name: Old.Path, by: New.Path })),
      tools: (Tool ?? []).map((tool) => tool.Path),
    });
  }
  const resolved = goModules(tree, modules);
  const imports: FoundImport[] = [];
  for (const { path, said } of answers) {
    for (const { path: name, line } of [...said.imports, ...resolved.toolsOf(path)]) {
      const candidates = resolved.outside(path, name);
      if (candidates.length > 0) imports.push({ name, candidates, test: isTestPath(path), file: path, line });
    }
  }
  return { declared: resolved.declared, imports, unknown, notes: resolved.notes() };
}

function isModuleFile(path: string): boolean {
  return ['go.mod', 'go.work'].includes(nameOf(path)) && !isTestData(path);
}

/** A file whose name begins with `_` or `.` no Go command ever compiles. */
function isSource(path: string): boolean {
  return path.endsWith('.go') && !/^[_.]/.test(nameOf(path)) && !isTestData(path);
}

/** What Go's own tools leave out: it is often no good code. */
function isTestData(path: string): boolean {
  return `/${path}`.includes('/testdata/');
}

async function askProgram(tree: SourceTree, files: readonly SourceFile[], reading: Reading): Promise<Array<{ path: string; said: Answer }>> {
  const { path: command, env } = await goProgram(reading);
  const stdin = Buffer.concat(files.flatMap(({ raw }) => [raw, Buffer.of(0)]));
  const end = await runTool({ command, args: [], cwd: tree.root, env, stdin, timeoutMs: READ_TIMEOUT_MS, signal: reading.signal });
  if (end === null) throw new EnvironmentError('read what the Go code imports: the program that was compiled for it is gone: try again');
  if (end.status !== 0) throw new EnvironmentError(`read what the Go code imports: ${howItEnded(end, READ_TIMEOUT_MS)}`);
  const lines = end.stdout.toString().split('\n').slice(0, -1);
  const answers = lines.map((line) => answer.parse(JSON.parse(line))).sort((a, b) => a.file - b.file);
  return answers.flatMap((said) => {
    const file = files[said.file];
    return file === undefined ? [] : [{ path: file.path, said }];
  });
}

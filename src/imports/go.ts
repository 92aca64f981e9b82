import type { UnknownImport } from '../schema/messages';
import { askGo, MOST_MODULES } from './goFiles';
import { goModules, type ModuleFile } from './goModules';
import { isTestPath, nameOf } from './paths';
import { type FoundImport, type LanguageFindings, nothingFound, type Reading, type SourceTree } from './types';

/**
 * Go, read by Go's own parser and not by `go list`, which leaves out what other build tags compile and the modules below another
 * one. A package that lies in the tree, or that a local `replace` or `vendor` brings there, is nobody else's.
 */

export async function readGo(tree: SourceTree, reading: Reading): Promise<LanguageFindings> {
  const sources = tree.own.filter(({ path }) => isSource(path));
  const moduleFiles = tree.own.filter(({ path }) => isModuleFile(path));
  if (sources.length + moduleFiles.length === 0) return nothingFound;
  const files = [...moduleFiles.slice(0, MOST_MODULES), ...sources];
  const said = await askGo(
    tree.root,
    files.map(({ raw }) => raw),
    reading,
  );
  const answers = files.flatMap(({ path }, at) => {
    const one = said.get(at);
    return one === undefined ? [] : [{ path, said: one }];
  });

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
      replaced: Replace.filter(({ New }) => New.Version === undefined).map(({ Old, New }) => ({ name: Old.Path, by: New.Path })),
      tools: Tool.map((tool) => tool.Path),
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

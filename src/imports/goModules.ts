import { posix } from 'node:path';
import { directoryOf, joined, upwards } from './paths';
import type { DeclaredName, SourceTree } from './types';

/** Which package is of which module, as Go has it: by the go.mod files of the tree, their local replacements, and `vendor`. */

export interface ModuleFile {
  /** A go.mod or a go.work. */
  readonly file: string;
  /** Its lines without comments, for evidence. */
  readonly lines: readonly string[];
  /** A go.work has none. */
  readonly name: string | null;
  /** By directories only: what another module replaces goes on to be imported by its old name. */
  readonly replaced: ReadonlyArray<{ readonly name: string; readonly by: string }>;
  readonly tools: readonly string[];
}

export interface GoModules {
  readonly declared: DeclaredName[];
  /** What modules a package could be of that is imported by this file; none when it lies in the tree. */
  outside(file: string, name: string): string[];
  toolsOf(file: string): Array<{ path: string; line: number }>;
  notes(): string[];
}

/** A message has room for no more, and no path that is real has as many parts. */
const MOST_CANDIDATES = 64;
const MOST_NOTES = 20;

export function goModules(tree: SourceTree, files: readonly ModuleFile[]): GoModules {
  const withGo = new Set(tree.files.filter(({ path }) => path.endsWith('.go')).map(({ path }) => directoryOf(path)));
  const all = directoriesOf(tree);
  const byFile = new Map(files.map((one) => [one.file, one]));
  const declared = files.flatMap(({ file, lines, name }): DeclaredName[] => {
    if (name === null) return [];
    return [{ name, directory: directoryOf(file), file, line: lineOf(lines, /^module\b/) }];
  });
  const own = new Map(declared.map(({ name, directory }) => [name, directory]));
  const nameAt = new Map(declared.map(({ name, directory }) => [directory, name]));
  const local = new Map(files.map((one) => [one.file, localReplacements(one, all)]));
  const copies = new Map<string, string>();

  /** The module of the tree that has this name, or a part of it, for the code in a directory. */
  const moduleInTree = (directories: readonly string[], name: string): { name: string; directory: string } | null => {
    for (const prefix of prefixesOf(name)) {
      const found = replacedFor(directories, prefix, local) ?? own.get(prefix);
      if (found !== undefined) return { name: prefix, directory: found };
    }
    return null;
  };

  return {
    declared,
    outside(file, name) {
      if (/^\.{0,2}\//.test(name) || name === '.' || name === '..') return [];
      const directories = upwards(directoryOf(file));
      const vendor = directories.map((directory) => joined(directory, 'vendor')).find((one) => withGo.has(joined(one, name)));
      if (vendor !== undefined) {
        copies.set(`${vendor}\0${name}`, `${name} is the copy in ${joined(vendor, name)}, which is used`);
        return [];
      }
      const inTree = moduleInTree(directories, name);
      if (inTree === null) return candidatesOf(name);
      const rest = name.slice(inTree.name.length + 1);
      const isThere = rest === '' || all.has(joined(inTree.directory, rest));
      // Nothing lies there: made by the build, or of a module whose name goes on where this one's ends.
      if (!isThere) return candidatesOf(name).filter((candidate) => candidate.length > inTree.name.length);
      const importing = directories.map((directory) => nameAt.get(directory)).find((one) => one !== undefined);
      if (importing === undefined || !areKin(importing, inTree.name))
        copies.set(inTree.name, `${inTree.name} is the copy in ${inTree.directory}, which is used`);
      return [];
    },
    toolsOf(file) {
      const { tools, lines } = byFile.get(file) ?? { tools: [], lines: [] };
      return tools.map((path) => ({ path, line: lineOf(lines, path) }));
    },
    notes() {
      const said = [...copies.values()].sort();
      return said.length <= MOST_NOTES
        ? said
        : [...said.slice(0, MOST_NOTES), `and ${said.length - MOST_NOTES} Go packages more are copies in the tree`];
    },
  };
}

/** Of all files: a package may hold assembly only, or what cgo compiles. */
function directoriesOf(tree: SourceTree): Set<string> {
  const found = new Set<string>();
  for (const { path } of tree.files) {
    for (let at = directoryOf(path); !found.has(at); at = directoryOf(at)) found.add(at);
  }
  return found;
}

/** Those that lead to a directory of the tree. */
function localReplacements({ file, replaced }: ModuleFile, all: ReadonlySet<string>): Map<string, string> {
  const found = new Map<string, string>();
  for (const { name, by } of replaced) {
    const directory = posix.normalize(posix.join(directoryOf(file), by)).replace(/\/$/, '');
    if (all.has(directory)) found.set(name, directory);
  }
  return found;
}

/** The nearest go.mod decides, and each go.work above it. */
function replacedFor(directories: readonly string[], name: string, local: ReadonlyMap<string, ReadonlyMap<string, string>>): string | undefined {
  const nearest = directories.find((directory) => local.has(joined(directory, 'go.mod')));
  const heeded = [...(nearest === undefined ? [] : [joined(nearest, 'go.mod')]), ...directories.map((directory) => joined(directory, 'go.work'))];
  return heeded.map((file) => local.get(file)?.get(name)).find((directory) => directory !== undefined);
}

/** The longest first. */
function prefixesOf(name: string): string[] {
  const parts = name.split('/');
  return parts.map((_, at) => parts.slice(0, parts.length - at).join('/'));
}

/** `x/lib/v2/p` is of `x/lib/v2` or of what goes on from there, never of `x/lib`. */
function candidatesOf(name: string): string[] {
  const parts = name.split('/');
  return prefixesOf(name)
    .filter((_, at) => !/^v([2-9]|[1-9][0-9]+)$/.test(parts[parts.length - at] ?? ''))
    .slice(-MOST_CANDIDATES);
}

/** Modules of one repository that are named so: neither is a copy of another's. */
function areKin(a: string, b: string): boolean {
  return `${a}/`.startsWith(`${b}/`) || `${b}/`.startsWith(`${a}/`);
}

function lineOf(lines: readonly string[], wanted: RegExp | string): number {
  const at = lines.findIndex((line) => (typeof wanted === 'string' ? line.includes(wanted) : wanted.test(line)));
  return at === -1 ? 1 : at + 1;
}

import { directoryOf, joined, nameOf, upwards } from './paths';
import type { DeclaredName, SourceTree } from './types';

/** Which Python module lies in the tree, for the code of a file: as Python would find it on its path. */

export interface PythonPackages {
  /** A file or directory that Python would take for this name, before its standard library or not. */
  isOwn(file: string, first: string): boolean;
  isInTree(file: string, name: string): boolean;
  notes(): string[];
}

interface Roots {
  /** The directory of the code and those above it. */
  readonly above: readonly string[];
  readonly own: readonly string[];
  readonly carried: readonly string[];
}

const SUFFIXES = ['.py', '.pyi', '.pyx', '.pyw'];
const MOST_NOTES = 20;
/** Where repositories keep what others wrote, to be put on the path by hand. */
const CARRIED = ['vendor', '_vendor', 'site-packages'];

export function pythonPackages(tree: SourceTree, declared: readonly DeclaredName[]): PythonPackages {
  const { directories, modules, packages } = layout(tree);
  const copies = new Map<string, string>();
  const byName = new Map<string, string[]>();
  for (const { name, directory } of declared) byName.set(name, [...(byName.get(name) ?? []), directory]);
  const projects = new Set(declared.map(({ directory }) => directory));
  const rootsOf = new Map<string, Roots>();

  const roots = (file: string): Roots => {
    const directory = directoryOf(file);
    const known = rootsOf.get(directory);
    if (known !== undefined) return known;
    const above = upwards(directory);
    // Run as a script or by pytest, a file finds what lies beside it, or beside the outermost package that it is in.
    const beside = above.find((one) => !packages.has(one)) ?? '.';
    const bare = above.filter((one) => !packages.has(one));
    const own = new Set([beside, ...bare.map((one) => joined(one, 'src')), ...bare.filter((one) => projects.has(one)), '.']);
    const carried = above.flatMap((one) => CARRIED.map((name) => joined(one, name))).filter((one) => directories.has(one));
    const found = { above, own: [...own], carried };
    rootsOf.set(directory, found);
    return found;
  };

  /** A package has all that is below it. A directory without an `__init__` gives way to each package of its name, wherever that is. */
  const isThere = (root: string, parts: readonly string[]): boolean => {
    let at = root;
    for (const part of parts) {
      at = joined(at, part);
      if (packages.has(at) || modules.has(at)) return true;
      if (!directories.has(at)) return false;
    }
    return false;
  };

  const used = (name: string, directory: string): true => {
    copies.set(`${directory} ${name}`, `${name} is the copy in ${directory}, which is used`);
    return true;
  };

  return {
    isOwn: (file, first) => roots(file).own.some((root) => isThere(root, [first])),
    isInTree(file, name) {
      const parts = name.split('.');
      const { above, own, carried } = roots(file);
      if (own.some((root) => isThere(root, parts))) return true;
      const first = parts[0] ?? '';
      const copy = carried.find((root) => isThere(root, parts));
      if (copy !== undefined) return used(first, joined(copy, first));
      for (const prefix of parts.map((_, at) => parts.slice(0, parts.length - at).join('.'))) {
        const directories = byName.get(prefix);
        if (directories === undefined) continue;
        return directories.some((directory) => above.includes(directory)) || used(prefix, directories[0] ?? '.');
      }
      return false;
    },
    notes() {
      const said = [...copies.values()].sort();
      const more = said.length - MOST_NOTES;
      return more <= 0 ? said : [...said.slice(0, MOST_NOTES), `and ${more} Python packages more are copies in the tree`];
    },
  };
}

export interface Layout {
  /** With Python somewhere below them. */
  readonly directories: Set<string>;
  /** Without their suffix. */
  readonly modules: Set<string>;
  /** Directories that are regular packages. */
  readonly packages: Set<string>;
  /** The modules and directories that stand in a directory. */
  readonly children: Map<string, Set<string>>;
}

export function layout(tree: SourceTree): Layout {
  const found: Layout = { directories: new Set(['.']), modules: new Set(), packages: new Set(), children: new Map() };
  const place = (path: string): void => {
    const directory = directoryOf(path);
    const beside = found.children.get(directory);
    if (beside === undefined) found.children.set(directory, new Set([path]));
    else beside.add(path);
  };
  for (const { path } of tree.files) {
    const suffix = SUFFIXES.find((one) => path.endsWith(one));
    if (suffix === undefined) continue;
    const directory = directoryOf(path);
    for (let at = directory; !found.directories.has(at); at = directoryOf(at)) {
      found.directories.add(at);
      place(at);
    }
    if (nameOf(path) === `__init__${suffix}`) {
      found.packages.add(directory);
    } else {
      found.modules.add(path.slice(0, -suffix.length));
      place(path.slice(0, -suffix.length));
    }
  }
  return found;
}

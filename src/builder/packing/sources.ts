import { join, posix, relative, sep } from 'node:path';
import walk from 'ignore-walk';

/** What of a tree is source: what git tracks, and what a command generated beside it; not what .gitignore leaves out, nor another artifact. */
export interface BuiltTree {
  /** Real path. */
  readonly root: string;
  /** Paths from the root that git tracked before the commands ran. Git is not asked afterwards: they may have set it up to run theirs. */
  readonly tracked: readonly string[];
  /** Real paths of all the artifacts. */
  readonly outputs: readonly string[];
}

/** The files of a directory of the tree, by their paths from it. A directory of which nothing is source, as a generated one, counts whole. */
export async function sourcesOf(tree: BuiltTree, directory: string): Promise<string[]> {
  const prefix = relative(tree.root, directory).split(sep).join('/');
  const ofDirectory = (names: readonly string[]): string[] =>
    names.filter((name) => prefix === '' || name.startsWith(`${prefix}/`)).map((name) => (prefix === '' ? name : name.slice(prefix.length + 1)));
  const unignored = ofDirectory(await walk({ path: tree.root, ignoreFiles: ['.gitignore'] }));
  const present = new Set(await walk({ path: directory }));
  const kept = new Set([...ofDirectory(tree.tracked).filter((name) => present.has(name)), ...unignored]);
  const names = kept.size === 0 ? [...present] : [...kept];
  const others = tree.outputs.filter((output) => output !== directory).map((output) => relative(directory, output).split(sep).join('/'));
  return names.filter((name) => !isBelowAny(name, others) && !name.split('/').includes('.git')).sort();
}

export function isBelowAny(name: string, places: readonly string[]): boolean {
  return places.some((place) => place === '' || name === place || name.startsWith(`${place}/`));
}

/** The directory of a path, and those above it, up to `.`, nearest first. */
export function directoriesAbove(name: string): string[] {
  const above: string[] = [];
  for (let at = posix.dirname(name); at !== '.'; at = posix.dirname(at)) above.push(at);
  return [...above, '.'];
}

export function inside(directory: string, name: string): string {
  return join(directory, ...name.split('/'));
}

/** What a path alone says of a file. Paths are from the root of the tree, with `/`; the root is `.`. */

/** Written by others and only carried along, wherever they lie. */
const CARRIED = new Set(['vendor', 'node_modules', '.venv', 'site-packages']);

const TEST_DIRECTORIES = new Set(['test', 'tests', '__tests__', 'spec']);

const TEST_FILE = /(_test\.go|\.(test|spec)\.[^./]+|_test\.py)$|^(test_.*\.py|conftest\.py)$/;

/** @param crates the directories that hold a Cargo.toml: `target` beside one is what cargo makes, else it is a name like another. */
export function isCarried(path: string, crates: ReadonlySet<string>): boolean {
  const parts = path.split('/');
  return parts.slice(0, -1).some((part, at) => CARRIED.has(part) || (part === 'target' && crates.has(parts.slice(0, at).join('/') || '.')));
}

/** By the names of its directories and its own. */
export function isTestPath(path: string): boolean {
  const parts = path.split('/');
  return TEST_FILE.test(parts.at(-1) ?? '') || parts.slice(0, -1).some((part) => TEST_DIRECTORIES.has(part));
}

export function directoryOf(path: string): string {
  const at = path.lastIndexOf('/');
  return at === -1 ? '.' : path.slice(0, at);
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A directory and those above it, up to the root. */
export function upwards(directory: string): string[] {
  const found = [directory];
  for (let at = directory; at !== '.'; ) {
    at = directoryOf(at);
    found.push(at);
  }
  return found;
}

export function joined(directory: string, path: string): string {
  return directory === '.' ? path : `${directory}/${path}`;
}

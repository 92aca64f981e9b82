import { isBuiltin } from 'node:module';
import type { UnknownImport } from '../schema/messages';
import { parsedApart } from './apart';
import { aliased, meaningOf, type Packages, packageName, packagesOf } from './packages';
import type { JavaScriptUse } from './parsing/javascript';
import type { Outcome } from './parsing/types';
import { directoryOf, isTestPath } from './paths';
import { type PathMaps, pathMaps } from './tsconfig';
import type { FoundImport, ReadLanguage } from './types';

/**
 * JavaScript and TypeScript: every way to name a module counts, types included, since what is compiled against a type changes with it.
 * An import is of the package outside the tree that it names; nothing is installed here, so names are resolved by what git tracks.
 */

const SOURCE_FILE = /\.(?:[cm]?[jt]s|[jt]sx)$/;

export const readJavaScript: ReadLanguage = async (tree, { signal }) => {
  const files = tree.own.filter(({ path }) => SOURCE_FILE.test(path));
  const packages = await packagesOf(tree);
  const maps = await pathMaps(tree, packages);
  const found: Found = { imports: [], unknown: [...packages.unknown], copies: new Map() };
  for await (const { path, outcome } of parsedApart<JavaScriptUse>('javascript', tree, files, signal))
    collect(path, outcome, { packages, maps }, found);
  return { declared: packages.declared, imports: found.imports, unknown: found.unknown, notes: notesOf(found.copies) };
};

interface Found {
  readonly imports: FoundImport[];
  readonly unknown: UnknownImport[];
  /** By name, the directory of the copy. */
  readonly copies: Map<string, string>;
}

function collect(path: string, outcome: Outcome<JavaScriptUse>, by: { packages: Packages; maps: PathMaps }, found: Found): void {
  const { uses, computed, broken } = outcome;
  if (broken !== null) found.unknown.push({ kind: 'unparsed', file: path, ...broken });
  for (const one of computed) found.unknown.push({ kind: 'computed', file: path, ...one });
  const directory = directoryOf(path);
  const isTest = isTestPath(path);
  for (const use of uses) {
    for (const meant of outsideOf(use, directory, by, found.copies)) {
      if (meant === 'computed') {
        found.unknown.push({
          kind: 'computed',
          file: path,
          line: use.line,
          reason: `what begins with ${JSON.stringify(use.text)} is only known in a run`,
        });
      } else {
        // Types of `@a/b` that others wrote are `@types/a__b`.
        const candidates = use.isTypesReference ? [`@types/${meant.replace(/^@(.+)\//, '$1__')}`, meant] : [meant];
        found.imports.push({ name: meant, candidates, test: isTest, file: path, line: use.line });
      }
    }
  }
}

/** The packages outside the tree that it is of: none for what lies in it and for what Node itself has. */
function outsideOf(
  use: JavaScriptUse,
  directory: string,
  { packages, maps }: { packages: Packages; maps: PathMaps },
  copies: Map<string, string>,
): string[] {
  const { text, isBeginning } = use;
  if (/^\.{0,2}(?:\/|$)/.test(text) || (!isBeginning && isBuiltin(text))) return [];
  if (isBeginning && !/^(?:@[^/]+\/)?[^@/#]+\//.test(text)) return ['computed'];
  const mapped = maps.mapped(text, directory);
  if (mapped === 'inside') return [];
  const names = text.startsWith('#') ? aliased(text, directory, packages) : [mapped?.package ?? packageName(text)];
  return names.flatMap((name) => {
    if (name === null) return [];
    const meaning = meaningOf(name, directory, packages);
    if (meaning.outside !== null) return [meaning.outside];
    if (meaning.copy !== null) copies.set(name, meaning.copy);
    return [];
  });
}

function notesOf(copies: ReadonlyMap<string, string>): string[] {
  return [...copies]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, directory]) => `${name} is the copy in ${directory}: no other module is used for it`);
}

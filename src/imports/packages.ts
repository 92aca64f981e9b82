import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import type { UnknownImport } from '../schema/messages';
import { directoryOf, isTestPath, joined, nameOf, upwards } from './paths';
import type { DeclaredName, SourceFile, SourceTree } from './types';

/** The package.json files of a tree: which names lie in it, and what a name or a `#alias` means where it is imported. */

const MOST_BYTES = 1 << 20;
/** What lies there stands for packages, and is none. */
const SAMPLES = new Set(['fixtures', '__fixtures__', '__mocks__', 'testdata', 'templates']);

const words = z.record(z.string(), z.string()).catch({});
const named = z.object({
  name: z.string().min(1).optional().catch(undefined),
  dependencies: words,
  devDependencies: words,
  peerDependencies: words,
  optionalDependencies: words,
  overrides: z.record(z.string(), z.unknown()).catch({}),
  resolutions: z.record(z.string(), z.unknown()).catch({}),
  imports: z.record(z.string(), z.unknown()).catch({}),
  workspaces: z
    .union([z.array(z.string()), z.object({ packages: z.array(z.string()) }).transform(({ packages }) => packages)])
    .optional()
    .catch(undefined),
});

interface Package {
  readonly directory: string;
  readonly name: string | undefined;
  /** As it is written for npm: a range, `file:…`, `npm:…`. */
  readonly dependencies: ReadonlyMap<string, string>;
  readonly imports: Readonly<Record<string, unknown>>;
}

export interface Packages {
  readonly declared: readonly DeclaredName[];
  readonly unknown: readonly UnknownImport[];
  readonly byDirectory: ReadonlyMap<string, Package>;
  /** Where a package of that name lies in the tree. */
  readonly places: ReadonlyMap<string, readonly string[]>;
  readonly isMember: (directory: string) => boolean;
  readonly directories: ReadonlySet<string>;
}

/** Of an import: the package that it is of, or that it is of none outside the tree; with the directory of a copy where that is why. */
export type Meaning = { readonly outside: string } | { readonly outside: null; readonly copy: string | null };

const inside: Meaning = { outside: null, copy: null };

export async function packagesOf(tree: SourceTree): Promise<Packages> {
  const byDirectory = new Map<string, Package>();
  const places = new Map<string, string[]>();
  const declared: DeclaredName[] = [];
  const unknown: UnknownImport[] = [];
  const members: { directory: string; patterns: readonly string[] }[] = [];
  const own = new Set(tree.own);
  for (const file of tree.files) {
    const directory = directoryOf(file.path);
    if (nameOf(file.path) === 'pnpm-workspace.yaml') members.push({ directory, patterns: await pnpmMembers(tree, file) });
    if (nameOf(file.path) !== 'package.json') continue;
    const isSample = isTestPath(file.path) || directory.split('/').some((part) => SAMPLES.has(part));
    const text = (await tree.read(file, MOST_BYTES))?.toString() ?? '';
    const value = json(text);
    if (value === null) {
      if (!isSample && own.has(file))
        unknown.push({ kind: 'unparsed', file: file.path, line: 1, reason: 'is no JSON object: what it names is not known' });
      continue;
    }
    const { name, imports, workspaces, ...rest } = value;
    byDirectory.set(directory, { directory, name, imports, dependencies: dependenciesOf(rest) });
    if (workspaces !== undefined) members.push({ directory, patterns: workspaces });
    if (name === undefined) continue;
    if (!isSample) places.set(name, [...(places.get(name) ?? []), directory]);
    if (own.has(file)) declared.push({ name, directory, file: file.path, line: lineOfName(text, name) });
  }
  const directories = new Set(tree.files.flatMap(({ path }) => upwards(directoryOf(path))));
  return { declared, unknown, byDirectory, places, directories, isMember: memberOf(members) };
}

/** @param text of a package.json. */
function json(text: string): z.infer<typeof named> | null {
  try {
    const found = named.safeParse(JSON.parse(text.replace(/^\uFEFF/, '')));
    return found.success ? found.data : null;
  } catch {
    return null;
  }
}

type Written = Omit<z.infer<typeof named>, 'name' | 'imports' | 'workspaces'>;

function dependenciesOf(written: Written): Map<string, string> {
  const { dependencies, devDependencies, peerDependencies, optionalDependencies, overrides, resolutions } = written;
  const kinds = [peerDependencies, optionalDependencies, devDependencies, dependencies];
  const all = new Map(kinds.flatMap((kind) => Object.entries(kind)));
  for (const [name, spec] of [...Object.entries(overrides), ...Object.entries(resolutions)])
    if (typeof spec === 'string' && !spec.startsWith('$')) all.set(name, spec);
  return all;
}

function lineOfName(text: string, name: string): number {
  const at = text.search(new RegExp(`"name"\\s*:\\s*${escaped(JSON.stringify(name))}`));
  return at === -1 ? 1 : text.slice(0, at).split('\n').length;
}

async function pnpmMembers(tree: SourceTree, file: SourceFile): Promise<string[]> {
  const text = (await tree.read(file, MOST_BYTES))?.toString() ?? '';
  try {
    const found = z.object({ packages: z.array(z.string()) }).safeParse(parse(text));
    return found.success ? found.data.packages : [];
  } catch {
    return [];
  }
}

function memberOf(workspaces: readonly { directory: string; patterns: readonly string[] }[]): (directory: string) => boolean {
  const all = workspaces.flatMap(({ directory, patterns }) =>
    patterns.map((pattern) => {
      const isExcluded = pattern.startsWith('!');
      const path = posix.normalize(joined(directory, isExcluded ? pattern.slice(1) : pattern)).replace(/\/+$/, '');
      return { isExcluded, parts: path.split('/') };
    }),
  );
  return (directory) => {
    const fitting = all.filter(({ parts }) => fits(directory.split('/'), parts));
    return fitting.length > 0 && !fitting.some(({ isExcluded }) => isExcluded);
  };
}

/** Of a glob what workspaces are written with: `**` at the end, `*` for a part or within one. */
function fits(directory: readonly string[], pattern: readonly string[]): boolean {
  for (const [at, part] of pattern.entries()) {
    const own = directory[at];
    if (own === undefined) return false;
    if (part === '**') return true;
    if (part !== own && bestPattern(own, [part]) === null) return false;
  }
  return directory.length === pattern.length;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** `@a/b/c` is of `@a/b`, `p/x` of `p`. Null for what names no package: a URL, a loader's own syntax. */
export function packageName(specifier: string): string | null {
  const plain = specifier.replace(/^npm:/, '').replace(/[?].*$/, '');
  return /^(@[^/@:!\s]+\/)?[^/@:!#\s.][^/@:!\s]*(?=$|\/|@)/.exec(plain)?.[0] ?? null;
}

/** What `name` is where a file of `directory` imports it. */
export function meaningOf(name: string, directory: string, packages: Packages): Meaning {
  const above = upwards(directory).flatMap((at) => packages.byDirectory.get(at) ?? []);
  if (above[0]?.name === name) return inside;
  for (const from of above) {
    const spec = from.dependencies.get(name);
    if (spec === undefined) continue;
    const path = /^(?:file|link|portal):(?:\/\/)?([^/~].*)$/.exec(spec)?.[1];
    const copy = path === undefined ? null : posix.normalize(joined(from.directory, path)).replace(/\/+$/, '');
    if (copy !== null && (packages.directories.has(copy) || packages.byDirectory.has(copy))) return copyIn(copy, packages);
    // An archive that lies in the tree holds the copy as well.
    if (copy !== null && /\.t(?:ar\.)?gz$/.test(copy) && !copy.startsWith('..')) return { outside: null, copy };
    const real = /^npm:(.+)$/.exec(spec)?.[1];
    if (real !== undefined) return { outside: packageName(real) ?? name };
  }
  const [place] = packages.places.get(name) ?? [];
  return place === undefined ? { outside: name } : copyIn(place, packages);
}

/** A workspace is made of its members, which are no copies of anything; neither is the repository one. */
function copyIn(directory: string, packages: Packages): Meaning {
  return directory === '.' || packages.isMember(directory) ? inside : { outside: null, copy: directory };
}

/** The packages that a `#alias` can stand for where a file of `directory` imports it, whatever the conditions. */
export function aliased(alias: string, directory: string, packages: Packages): string[] {
  const nearest = upwards(directory).find((at) => packages.byDirectory.has(at));
  const imports = (nearest === undefined ? undefined : packages.byDirectory.get(nearest))?.imports ?? {};
  const key = alias in imports ? alias : bestPattern(alias, Object.keys(imports));
  if (key === null) return [];
  const middle = key.includes('*') ? starOf(alias, key) : '';
  return targets(imports[key]).flatMap((target) =>
    target.startsWith('.') || isBuiltin(target) ? [] : (packageName(target.replaceAll('*', () => middle)) ?? []),
  );
}

/** The pattern with one `*` that fits, the one with the longest beginning. */
export function bestPattern(text: string, patterns: readonly string[]): string | null {
  const fitting = patterns.filter((pattern) => {
    const [before, after, more] = pattern.split('*');
    return (
      before !== undefined &&
      after !== undefined &&
      more === undefined &&
      text.length >= pattern.length - 1 &&
      text.startsWith(before) &&
      text.endsWith(after)
    );
  });
  return fitting.sort((a, b) => b.indexOf('*') - a.indexOf('*') || b.length - a.length)[0] ?? null;
}

/** What the `*` of a pattern that fits stands for. */
export function starOf(text: string, pattern: string): string {
  const [before = '', after = ''] = pattern.split('*');
  return text.slice(before.length, text.length - after.length);
}

function targets(target: unknown): string[] {
  if (typeof target === 'string') return [target];
  return typeof target === 'object' && target !== null ? Object.values(target).flatMap(targets) : [];
}

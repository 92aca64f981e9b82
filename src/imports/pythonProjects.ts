import { parse } from 'smol-toml';
import { z } from 'zod';
import type { UnknownImport } from '../schema/messages';
import { directoryOf, isTestPath, joined, nameOf } from './paths';
import { type Layout, layout } from './pythonPackages';
import type { DeclaredName, SourceFile, SourceTree } from './types';

/**
 * By what names the code of a Python project is imported: what stands in its wheel at the top. Each build backend has settings for it,
 * and finds for itself what they leave out; the name of the project itself is not what code imports.
 */

export interface PythonProjects {
  readonly declared: DeclaredName[];
  readonly unknown: UnknownImport[];
}

/** The first of a directory speaks for it. */
const MARKERS = ['pyproject.toml', 'setup.cfg', 'setup.py'];
const MOST_BYTES = 1 << 20;

/** Beside the code of a project, not in its wheel. */
const ASIDE =
  /^(setup|conftest|noxfile|tasks|fabfile|toxfile|pavement|manage|tests?|docs?|documentation|examples?|samples?|scripts?|tools?|utils?|build|dist|bin|bench|benchmarks?|notebooks?|migrations|third_party|vendor|_vendor|\..*)$|-/;

const texts = z.array(z.string());

type Settings = Record<string, unknown>;

export async function pythonProjects(tree: SourceTree): Promise<PythonProjects> {
  const markers = new Map<string, SourceFile>();
  for (const file of tree.own) {
    const rank = MARKERS.indexOf(nameOf(file.path));
    if (rank === -1 || isTestPath(file.path)) continue;
    const known = markers.get(directoryOf(file.path));
    if (known === undefined || rank < MARKERS.indexOf(nameOf(known.path))) markers.set(directoryOf(file.path), file);
  }
  const found: PythonProjects = { declared: [], unknown: [] };
  if (markers.size === 0) return found;
  const there = layout(tree);
  for (const [directory, file] of markers) {
    const text = (await tree.read(file, MOST_BYTES))?.toString() ?? null;
    const settings = text === null ? { trouble: { line: 1, reason: 'it is larger than 1 MiB' } } : settingsOf(file, text);
    if ('trouble' in settings) {
      found.unknown.push({ kind: 'unparsed', file: file.path, ...settings.trouble });
      continue;
    }
    const line =
      1 +
      Math.max(
        (text ?? '').split('\n').findIndex((one) => /^\s*(["']?)name\1\s*=/.test(one)),
        0,
      );
    for (const name of importedAs(directory, settings.read, there)) found.declared.push({ name, directory, file: file.path, line });
  }
  return found;
}

function settingsOf(file: SourceFile, text: string): { read: Settings } | { trouble: { line: number; reason: string } } {
  if (nameOf(file.path) !== 'pyproject.toml') return { read: {} };
  try {
    return { read: parse(text) };
  } catch (error) {
    const line = error instanceof Error && 'line' in error && typeof error.line === 'number' ? error.line : 1;
    return { trouble: { line, reason: (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '' } };
  }
}

function importedAs(directory: string, settings: Settings, there: Layout): string[] {
  const said = saidNames(directory, settings, there);
  return [...new Set(outermost(said ?? foundNames(directory, settings, there)))].sort();
}

/** What the project says itself; null where it leaves that to its backend. */
function saidNames(directory: string, settings: Settings, there: Layout): string[] | null {
  const get = <T>(form: z.ZodType<T>, ...keys: string[]): T | null => form.safeParse(at(settings, keys)).data ?? null;

  const names = get(texts, 'project', 'import-names');
  if (names !== null && names.length > 0) return names.map((one) => (one.split(';', 1)[0] ?? '').trim());

  const listed = [...(get(texts, 'tool', 'setuptools', 'packages') ?? []), ...(get(texts, 'tool', 'setuptools', 'py-modules') ?? [])];
  if (listed.length > 0) return listed;
  const where = get(texts, 'tool', 'setuptools', 'packages', 'find', 'where');
  if (where !== null) return where.flatMap((one) => everyName(inside(directory, one), there));
  const packageDirectory = get(z.record(z.string(), z.string()), 'tool', 'setuptools', 'package-dir');
  if (packageDirectory?.[''] !== undefined) return everyName(inside(directory, packageDirectory['']), there);

  const poetry = get(z.array(z.object({ include: z.string(), from: z.string().optional() })), 'tool', 'poetry', 'packages');
  if (poetry !== null) return poetry.flatMap(({ include, from }) => namesAt(inside(directory, from ?? '.'), include, there));

  const wheel = ['tool', 'hatch', 'build', 'targets', 'wheel'];
  const hatch = get(texts, ...wheel, 'packages') ?? get(texts, ...wheel, 'only-include') ?? get(texts, 'tool', 'pdm', 'build', 'includes');
  if (hatch !== null) return hatch.flatMap((path) => namesAt(inside(directory, directoryOf(trimmed(path))), nameOf(trimmed(path)), there));

  const single = z.string().transform((one) => [one]);
  const keys = [
    ['tool', 'flit', 'module', 'name'],
    ['tool', 'flit', 'metadata', 'module'],
    ['tool', 'maturin', 'module-name'],
    ['tool', 'uv', 'build-backend', 'module-name'],
  ];
  for (const path of keys) {
    const module = get(texts.or(single), ...path);
    // An extension module deep in a package is found with it.
    if (module !== null) return module.map((one) => (path.includes('maturin') ? (one.split('.', 1)[0] ?? one) : one));
  }
  return null;
}

/** As setuptools finds them; other backends take what is called like the project, where there is such. */
function foundNames(directory: string, settings: Settings, there: Layout): string[] {
  const text = (...keys: string[]): string | null => z.string().safeParse(at(settings, keys)).data ?? null;
  const source =
    text('tool', 'maturin', 'python-source') ?? text('tool', 'uv', 'build-backend', 'module-root') ?? text('tool', 'pdm', 'build', 'package-dir');
  const root = [source, 'src'].flatMap((one) => (one === null ? [] : [inside(directory, one)])).find((one) => there.directories.has(one));
  const every = everyName(root ?? directory, there).filter((name) => root !== undefined || !ASIDE.test(name.split('.', 1)[0] ?? ''));
  const project = text('project', 'name') ?? text('tool', 'poetry', 'name');
  const backend = text('build-system', 'build-backend') ?? 'setuptools';
  if (project === null || (root !== undefined && backend.startsWith('setuptools'))) return every;
  const named = every.filter((name) => plain(name) === plain(project));
  return named.length > 0 ? named : every;
}

/** What stands directly in a directory; below what is no regular package, what stands there. */
function everyName(root: string, { children, modules, packages }: Layout): string[] {
  const names: string[] = [];
  const open = [{ directory: root, prefix: '' }];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const { directory, prefix } = one;
    for (const path of children.get(directory) ?? []) {
      const name = `${prefix}${nameOf(path)}`;
      if (!/^[\p{L}_][\p{L}\p{N}_]*$/u.test(nameOf(path))) continue;
      if (modules.has(path) || packages.has(path)) names.push(name);
      else open.push({ directory: path, prefix: `${name}.` });
    }
  }
  return names;
}

/** Of a package that is named by its path: itself, or what is in it where it shares its name with others. */
function namesAt(root: string, path: string, there: Layout): string[] {
  const steps = trimmed(path)
    .replace(/\.pyi?$/, '')
    .replace(/\/\*.*$/, '')
    .split('/');
  const name = steps.join('.');
  const directory = inside(root, steps.join('/'));
  if (there.packages.has(directory) || there.modules.has(directory)) return [name];
  return everyName(directory, there).map((one) => `${name}.${one}`);
}

/** `ns.core` and not `ns.core.part`: whoever imports that imports it through the first. */
function outermost(names: readonly string[]): string[] {
  const all = new Set(names);
  return names.filter((name) => {
    const parts = name.split('.');
    return !parts.slice(1).some((_, n) => all.has(parts.slice(0, n + 1).join('.')));
  });
}

function at(settings: Settings, keys: readonly string[]): unknown {
  let found: unknown = settings;
  for (const key of keys) found = typeof found === 'object' && found !== null && Object.hasOwn(found, key) ? (found as Settings)[key] : undefined;
  return found;
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '_');
}

function trimmed(path: string): string {
  return path.replace(/^(\.\/)+|\/+$/g, '') || '.';
}

function inside(directory: string, path: string): string {
  const within = trimmed(path);
  return within === '.' ? directory : joined(directory, within);
}

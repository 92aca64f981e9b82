import { posix } from 'node:path';
import { parse } from 'jsonc-parser';
import { z } from 'zod';
import { bestPattern, type Packages, packageName, starOf } from './packages';
import { directoryOf, joined, nameOf, upwards } from './paths';
import type { SourceTree } from './types';

/**
 * `paths` and `baseUrl` of the tsconfig.json and jsconfig.json of a tree, with what they extend. Read from the tracked files alone: a resolver
 * over the file system follows links out of it, and gives up on a file that extends a package, since none is installed here.
 */

const MOST_BYTES = 1 << 20;
const CONFIG = /^(?:ts|js)config(?:\.[^/]*)?\.json$/;

interface Config {
  readonly extends: readonly string[];
  readonly references: readonly string[];
  readonly baseUrl: string | null;
  readonly paths: ReadonlyMap<string, readonly string[]> | null;
}

/** What applies to the files of a project. Directories from the root of the tree. */
interface Effective {
  readonly baseUrl: string | null;
  readonly paths: { readonly from: string; readonly targets: ReadonlyMap<string, readonly string[]> } | null;
}

export interface PathMaps {
  /** A specifier that a config maps to a file of the tree, or to a package of another name; null where none does. */
  readonly mapped: (specifier: string, directory: string) => 'inside' | { readonly package: string } | null;
}

export async function pathMaps(tree: SourceTree, packages: Packages): Promise<PathMaps> {
  const configs = await readConfigs(tree, packages);
  const inDirectory = new Map<string, string[]>();
  for (const path of configs.keys()) {
    if (!CONFIG.test(nameOf(path))) continue;
    const directory = directoryOf(path);
    inDirectory.set(directory, [...(inDirectory.get(directory) ?? []), path]);
  }
  const effective = new Map<string, Effective[]>();
  /** The nearest directory with a config decides, with all configs in it and what they refer to: which of them builds a file is not asked. */
  const applying = (directory: string): Effective[] => {
    const nearest = upwards(directory).find((at) => inDirectory.has(at));
    if (nearest === undefined) return [];
    const known = effective.get(nearest);
    if (known !== undefined) return known;
    const paths = [...(inDirectory.get(nearest) ?? [])].sort();
    const all = new Set(paths.flatMap((path) => [path, ...(configs.get(path)?.references ?? []).map((at) => referred(path, at))]));
    const found = [...all]
      .filter((path) => configs.has(path))
      .map((path) => effectOf(path, directoryOf(path), { configs, packages, known: new Map() }));
    effective.set(nearest, found);
    return found;
  };
  const exists = existing(tree);
  return {
    mapped: (specifier, directory) => {
      let other: { package: string } | null = null;
      for (const config of applying(directory)) {
        const found = through(config, specifier, exists);
        if (found === 'inside') return found;
        other ??= found;
      }
      return other;
    },
  };
}

function through({ paths, baseUrl }: Effective, specifier: string, exists: (path: string) => boolean): ReturnType<PathMaps['mapped']> {
  const keys = [...(paths?.targets.keys() ?? [])];
  const key = paths?.targets.has(specifier) === true ? specifier : bestPattern(specifier, keys);
  if (paths !== null && key !== null) {
    const star = key.includes('*') ? starOf(specifier, key) : '';
    const targets = (paths.targets.get(key) ?? []).map((target) =>
      posix.normalize(
        joined(
          paths.from,
          target.replace('*', () => star),
        ),
      ),
    );
    if (targets.some(exists)) return 'inside';
    for (const target of targets) {
      const name = packageName(
        target
          .split(/(?:^|\/)node_modules\//)
          .slice(1)
          .at(-1) ?? '',
      );
      if (name !== null && name !== packageName(specifier)) return { package: name.replace(/^@types\/(?=.)/, '') };
    }
  }
  return baseUrl !== null && exists(posix.normalize(joined(baseUrl, specifier))) ? 'inside' : null;
}

/** A file of the tree as an import names it: itself, without its ending, with `.js` for what is written in TypeScript, or its directory. */
function existing(tree: SourceTree): (path: string) => boolean {
  let known: Set<string> | null = null;
  return (path) => {
    known ??= new Set(
      tree.own.flatMap(({ path: at }) => {
        const directory = directoryOf(at);
        return [at, at.replace(/(?:\.d)?\.[^./]+$/, ''), ...upwards(directory)];
      }),
    );
    return known.has(path) || known.has(path.replace(/\.[cm]?jsx?$/, ''));
  };
}

async function readConfigs(tree: SourceTree, packages: Packages): Promise<Map<string, Config>> {
  const byPath = new Map(tree.own.filter(({ path }) => path.endsWith('.json')).map((file) => [file.path, file]));
  const configs = new Map<string, Config>();
  const waiting = [...byPath.keys()].filter((path) => CONFIG.test(nameOf(path)));
  // Each tracked file is read once at most.
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = byPath.get(path);
    if (file === undefined || configs.has(path)) continue;
    const config = configOf((await tree.read(file, MOST_BYTES))?.toString() ?? '');
    configs.set(path, config);
    const from = path;
    waiting.push(...config.extends.flatMap((at) => extended(from, at, packages)), ...config.references.map((at) => referred(from, at)));
  }
  return configs;
}

/** The files that it may mean, the likeliest first. */
function extended(from: string, specifier: string, packages: Packages): string[] {
  const name = packageName(specifier);
  const [place] = name === null ? [] : (packages.places.get(name) ?? []);
  if (!specifier.startsWith('.') && place === undefined) return [];
  const base = specifier.startsWith('.') ? joined(directoryOf(from), specifier) : joined(place ?? '.', specifier.slice(name?.length ?? 0) || '.');
  const path = posix.normalize(base);
  return [path, `${path}.json`, joined(path, 'tsconfig.json')];
}

function referred(from: string, to: string): string {
  const path = posix.normalize(joined(directoryOf(from), to)).replace(/\/+$/, '');
  return path.endsWith('.json') ? path : joined(path, 'tsconfig.json');
}

interface Reach {
  readonly configs: ReadonlyMap<string, Config>;
  readonly packages: Packages;
  /** Each once, however many extend it. */
  readonly known: Map<string, Effective>;
}

/** @param leaf the directory of the config that extends, which is what `${configDir}` stands for. */
function effectOf(path: string, leaf: string, reach: Reach): Effective {
  const { configs, packages, known } = reach;
  const earlier = known.get(path);
  if (earlier !== undefined) return earlier;
  let effect: Effective = { baseUrl: null, paths: null };
  // One that extends itself, through whatever, has nothing of itself.
  known.set(path, effect);
  const config = configs.get(path);
  if (config === undefined) return effect;
  for (const specifier of config.extends) {
    const base = extended(path, specifier, packages).find((at) => configs.has(at));
    if (base === undefined) continue;
    const { baseUrl, paths } = effectOf(base, leaf, reach);
    effect = { baseUrl: baseUrl ?? effect.baseUrl, paths: paths ?? effect.paths };
  }
  const directory = directoryOf(path);
  const placed = (text: string): string => text.replace(/^\$\{configDir\}/, () => posix.relative(directory, leaf) || '.');
  const baseUrl = config.baseUrl === null ? effect.baseUrl : posix.normalize(joined(directory, placed(config.baseUrl)));
  const targets = config.paths === null ? null : new Map([...config.paths].map(([key, values]) => [key, values.map(placed)]));
  const found: Effective = { baseUrl, paths: targets === null ? effect.paths : { from: baseUrl ?? directory, targets } };
  known.set(path, found);
  return found;
}

/** What is broken, or is not what it should be, says nothing. */
const written = z.object({
  extends: z.union([z.string().transform((one) => [one]), z.array(z.string())]).catch([]),
  references: z.array(z.object({ path: z.string() }).transform(({ path }) => path)).catch([]),
  compilerOptions: z
    .object({ baseUrl: z.string().nullable().catch(null), paths: z.record(z.string(), z.array(z.string()).catch([])).nullable().catch(null) })
    .catch({ baseUrl: null, paths: null }),
});

function configOf(text: string): Config {
  const { extends: bases, references, compilerOptions } = written.catch(emptyConfig).parse(jsonOf(text));
  const { baseUrl, paths } = compilerOptions;
  return { extends: bases, references, baseUrl, paths: paths === null ? null : new Map(Object.entries(paths)) };
}

const emptyConfig = { extends: [], references: [], compilerOptions: { baseUrl: null, paths: null } };

function jsonOf(text: string): unknown {
  try {
    return parse(text.replace(/^\uFEFF/, ''), [], { allowTrailingComma: true });
  } catch {
    // Nested beyond what the stack holds.
    return null;
  }
}

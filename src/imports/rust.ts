import { posix } from 'node:path';
import { parsedApart } from './apart';
import { type Crate, type Crates, cratesOf, type Dependency, nearestCrate, underscored } from './cargo';
import type { RustUse } from './parsing/rust';
import type { Outcome } from './parsing/types';
import { directoryOf, isTestPath, joined, nameOf } from './paths';
import type { FoundImport, LanguageFindings, ReadLanguage } from './types';

/**
 * Rust: a path that begins with the name of a dependency, by cargo's own reading of Cargo.toml, is an import of it. Of what a macro expands to nothing
 * is known, nor of a path in a string, as `#[serde(with = "…")]` takes one.
 */

/** Of the compiler: a name of these is another crate only where Cargo.toml says so. */
const SYSROOT = new Set(['std', 'core', 'alloc', 'proc_macro', 'test']);

const TEST_DIRECTORY = /^(?:tests|benches|examples)\//;

export const readRust: ReadLanguage = async (tree, reading) => {
  const crates = await cratesOf(tree, reading);
  const files = tree.own.filter(({ path }) => path.endsWith('.rs') && nearestCrate(path, crates) !== undefined);
  const parsed: Parsed[] = [];
  for await (const { path, outcome } of parsedApart<RustUse>('rust', tree, files, reading.signal)) {
    const crate = nearestCrate(path, crates);
    if (crate !== undefined) parsed.push({ path, outcome, crate });
  }
  return { ...collected(parsed, crates), declared: crates.declared } satisfies LanguageFindings;
};

interface Parsed {
  readonly path: string;
  readonly outcome: Outcome<RustUse>;
  readonly crate: Crate;
}

function collected(parsed: readonly Parsed[], crates: Crates): Omit<LanguageFindings, 'declared'> {
  const modules = modulesOf(parsed);
  const unseen = unseenOf(parsed);
  const imports: FoundImport[] = [];
  const copies = new Map<string, string>();
  for (const { path, outcome, crate } of parsed) {
    const isTestFile = isOfTests(path, crate, modules.tests);
    for (const use of outcome.uses) {
      const found = use.kind === 'mod' ? null : importOf(use, path, crate, modules.names.get(crate.directory), unseen.has(crate));
      if (found === null) continue;
      const copy = found.place ?? crates.places.get(found.library) ?? null;
      if (copy === null) {
        const test = isTestFile || use.isTest || found.isOnlyOfTests;
        imports.push({ name: found.library, candidates: [found.library], test, file: path, line: use.line });
      } else if (crates.byDirectory.get(copy)?.workspace !== crate.workspace) copies.set(found.library, copy);
    }
  }
  const unknown = parsed.flatMap(({ path, outcome: { broken } }) => (broken === null ? [] : [{ kind: 'unparsed' as const, file: path, ...broken }]));
  const notes = [...copies]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, directory]) => `${name} is the copy in ${directory}: no other module is used for it`);
  return { imports, unknown: [...crates.unknown, ...unknown], notes };
}

/** Crates with a dependency that nothing in them calls by its package's name: it may be called otherwise. */
function unseenOf(parsed: readonly Parsed[]): Set<Crate> {
  const called = new Map<Crate, Set<string>>();
  for (const { crate, outcome } of parsed) {
    const names = called.get(crate) ?? new Set();
    called.set(crate, names);
    for (const { name } of outcome.uses) names.add(name);
  }
  return new Set(
    [...called].filter(([{ dependencies }, names]) => [...dependencies.keys()].some((name) => !names.has(name))).map(([crate]) => crate),
  );
}

interface NamesOfModules {
  readonly all: ReadonlySet<string>;
  readonly atRoot: ReadonlySet<string>;
}

interface Modules {
  /** Of each crate, by its directory, the names of all modules in it. */
  readonly names: ReadonlyMap<string, NamesOfModules>;
  /** Files without their ending, which `mod` under `#[cfg(test)]` names. */
  readonly tests: ReadonlySet<string>;
}

function modulesOf(parsed: readonly Parsed[]): Modules {
  const names = new Map<string, { all: Set<string>; atRoot: Set<string> }>();
  const tests = new Set<string>();
  for (const { path, outcome, crate } of parsed) {
    const known = names.get(crate.directory) ?? { all: new Set(), atRoot: new Set() };
    names.set(crate.directory, known);
    const stem = nameOf(path).replace(/\.rs$/, '');
    const isRoot = crate.roots.includes(path);
    known.all.add(stem === 'mod' ? nameOf(directoryOf(path)) : stem);
    const base = isRoot || stem === 'mod' ? directoryOf(path) : joined(directoryOf(path), stem);
    for (const { kind, name, at, isTest } of outcome.uses) {
      if (kind !== 'mod' || at === undefined) continue;
      known.all.add(name);
      if (isRoot && at.within.length === 1) known.atRoot.add(name);
      if (!isTest) continue;
      const file = at.path === null ? joined(base, at.within.join('/')) : joined(directoryOf(path), at.path.replace(/(?:\/mod)?\.rs$/, ''));
      tests.add(posix.normalize(file));
    }
  }
  return { names, tests };
}

/** By where it lies in its package, as cargo has it, or below a module that only tests have. */
function isOfTests(path: string, crate: Crate, tests: ReadonlySet<string>): boolean {
  const inCrate = crate.directory === '.' ? path : path.slice(crate.directory.length + 1);
  if (TEST_DIRECTORY.test(inCrate) || crate.testRoots.has(path) || (crate.directory !== '.' && isTestPath(`${crate.directory}/`))) return true;
  const parts = path.replace(/(?:\/mod)?\.rs$/, '').split('/');
  return parts.some((_, at) => tests.has(parts.slice(0, at + 1).join('/')));
}

function importOf(use: RustUse, path: string, crate: Crate, modules: NamesOfModules | undefined, hasUnseen: boolean): Dependency | null {
  const { name, kind, isAbsolute } = use;
  // Until 2018 paths of `use` began at the root of the crate.
  if (crate.edition === '2015' && kind === 'use' && modules?.atRoot.has(name) === true) return null;
  const dependencies = crate.dependencies.get(name);
  const [first] = dependencies ?? [];
  if (dependencies !== undefined && first !== undefined) {
    const isBuild = nameOf(path) === 'build.rs';
    return { ...first, isOnlyOfTests: !isBuild && dependencies.every(({ isOnlyOfTests }) => isOnlyOfTests) };
  }
  // A library need not be called as its package is: what is asked for by name and lies nowhere here may be one.
  const isAsked = hasUnseen && (kind === 'extern' || kind === 'use');
  if (!isAsked || SYSROOT.has(name) || name === crate.library || name !== underscored(name.toLowerCase())) return null;
  if (!isAbsolute && kind === 'use' && modules?.all.has(name) === true) return null;
  return { library: name, isOnlyOfTests: false, place: null };
}

import { mkdir, realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, posix, relative } from 'node:path';
import { parse } from 'smol-toml';
import { z } from 'zod';
import { EnvironmentError } from '../domain/errors';
import type { UnknownImport } from '../schema/messages';
import { directoryOf, isTestPath, nameOf, upwards } from './paths';
import { runTool, type ToolEnd } from './run';
import { toolPath } from './tools';
import type { DeclaredName, Reading, SourceFile, SourceTree } from './types';

/** The crates of a tree as cargo knows them. It is asked in a folder outside the tree, so that it heeds no configuration there and writes nothing. */

const TIMEOUT_MS = 60_000;
/** For all of a tree: a manifest may send cargo anywhere, and there may be many. */
const TOGETHER_MS = 300_000;
/** Of address space: cargo follows links to wherever they lead. */
const MOST_KIB = 4 << 20;
const MOST_TOML_BYTES = 1 << 20;

const metadata = z.object({
  packages: z.array(
    z.object({
      name: z.string(),
      edition: z.string(),
      manifest_path: z.string(),
      targets: z.array(z.object({ kind: z.array(z.string()), name: z.string(), src_path: z.string() })),
      dependencies: z.array(
        z.object({ name: z.string(), kind: z.enum(['dev', 'build']).nullable(), rename: z.string().nullable(), path: z.string().optional() }),
      ),
    }),
  ),
  workspace_root: z.string(),
});

type Metadata = z.infer<typeof metadata>;

/** A dependency by the name that code calls it by. */
export interface Dependency {
  /** Of its library, as far as its package tells. */
  readonly library: string;
  readonly isOnlyOfTests: boolean;
  /** Where in the tree it lies. */
  readonly place: string | null;
}

export interface Crate {
  readonly directory: string;
  /** Of which it is a member; its own directory where it stands alone. */
  readonly workspace: string;
  readonly edition: string;
  /** Of its own library; null for one that has programs only. */
  readonly library: string | null;
  /** Files, from the root of the tree. */
  readonly roots: readonly string[];
  readonly testRoots: ReadonlySet<string>;
  readonly dependencies: ReadonlyMap<string, readonly Dependency[]>;
}

export interface Crates {
  readonly byDirectory: ReadonlyMap<string, Crate>;
  readonly declared: readonly DeclaredName[];
  readonly unknown: readonly UnknownImport[];
  /** Packages that lie in the tree, by name with `_` for `-`. */
  readonly places: ReadonlyMap<string, string>;
}

/** @throws EnvironmentError when there is no cargo that works here. */
export async function cratesOf(tree: SourceTree, reading: Reading): Promise<Crates> {
  const manifests = tree.own.filter(({ path }) => nameOf(path) === 'Cargo.toml').sort((a, b) => depth(a) - depth(b) || (a.path < b.path ? -1 : 1));
  const byDirectory = new Map<string, Crate>();
  const declared: DeclaredName[] = [];
  const unknown: UnknownImport[] = [];
  const places = new Map<string, string>();
  // What only tests hold needs no cargo of a builder.
  if (manifests.every(({ path }) => isTestPath(path))) return { byDirectory, declared, unknown, places };
  const cargo = await workingCargo(reading);
  const root = await realpath(tree.root);
  const deadline = Date.now() + TOGETHER_MS;
  const byPath = new Map(manifests.map((file) => [file.path, file]));
  for (const file of manifests) {
    if (byDirectory.has(directoryOf(file.path))) continue;
    if (Date.now() > deadline) {
      const reason = `it is not read, nor those after it: the crates before took ${TOGETHER_MS / 60_000} minutes`;
      unknown.push({ kind: 'unparsed', file: file.path, line: 1, reason });
      break;
    }
    const found = await cargo.metadata(root, file.path);
    if ('reason' in found) {
      if (!isTestPath(file.path)) unknown.push({ kind: 'unparsed', file: file.path, ...found });
      continue;
    }
    for (const one of found.packages) {
      const path = inTree(root, one.manifest_path);
      const own = byPath.get(path);
      if (own === undefined) continue;
      const crate = crateOf(one, root, { directory: directoryOf(path), workspace: inTree(root, found.workspace_root) });
      byDirectory.set(crate.directory, crate);
      if (!isTestPath(path)) places.set(underscored(one.name), crate.directory);
      if (crate.library !== null) declared.push(...(await namesOf(one.name, crate.library, own, tree)));
    }
  }
  await addCarried(tree, places);
  return { byDirectory, declared, unknown, places };
}

function depth({ path }: SourceFile): number {
  return path.split('/').length;
}

function inTree(root: string, path: string): string {
  return relative(root, path).split('\\').join('/') || '.';
}

export function underscored(name: string): string {
  return name.replaceAll('-', '_');
}

function crateOf(written: Metadata['packages'][number], root: string, place: { directory: string; workspace: string }): Crate {
  const { name, edition, targets, dependencies } = written;
  const ofKind = (kinds: readonly string[]) => targets.filter(({ kind }) => kind.some((one) => kinds.includes(one)));
  const [library] = ofKind(['lib', 'rlib', 'dylib', 'cdylib', 'staticlib', 'proc-macro']);
  const byName = new Map<string, Dependency[]>();
  for (const one of dependencies) {
    const called = underscored(one.rename ?? one.name);
    const place = one.path === undefined ? null : inTree(root, one.path);
    const dependency = { library: underscored(one.name), isOnlyOfTests: one.kind === 'dev', place: place?.startsWith('..') === true ? null : place };
    byName.set(called, [...(byName.get(called) ?? []), dependency]);
  }
  const roots = targets.map(({ src_path }) => inTree(root, src_path));
  const testRoots = new Set(ofKind(['test', 'bench', 'example']).map(({ src_path }) => inTree(root, src_path)));
  // Code calls a library by its target's name, which need not be its package's.
  return { ...place, edition, library: library === undefined ? null : underscored(library.name || name), roots, testRoots, dependencies: byName };
}

/** By the library's name code imports it; by its package's a Cargo.toml that gives it another name. */
async function namesOf(name: string, library: string, file: SourceFile, tree: SourceTree): Promise<DeclaredName[]> {
  const lines = ((await tree.read(file, MOST_TOML_BYTES))?.toString() ?? '').split('\n');
  const lineOf = (word: string): number => lines.findIndex((line) => /^\s*name\s*=/.test(line) && line.includes(`"${word}"`)) + 1;
  const line = lineOf(name) || 1;
  const names = [{ name: library, line: lineOf(library) || line }];
  if (underscored(name) !== library) names.push({ name: underscored(name), line });
  return names.map((one) => ({ ...one, directory: directoryOf(file.path), file: file.path }));
}

/** What lies in `vendor` and the like, which cargo is not asked about. */
async function addCarried(tree: SourceTree, places: Map<string, string>): Promise<void> {
  const own = new Set(tree.own);
  for (const file of tree.files) {
    if (nameOf(file.path) !== 'Cargo.toml' || own.has(file)) continue;
    const name = packageName((await tree.read(file, MOST_TOML_BYTES))?.toString() ?? '');
    if (name !== null && !places.has(underscored(name))) places.set(underscored(name), directoryOf(file.path));
  }
}

const manifest = z.object({ package: z.object({ name: z.string() }) });

function packageName(text: string): string | null {
  try {
    const found = manifest.safeParse(parse(text));
    return found.success ? found.data.package.name : null;
  } catch {
    return null;
  }
}

export function nearestCrate(path: string, { byDirectory }: Crates): Crate | undefined {
  return upwards(directoryOf(posix.normalize(path))).flatMap((at) => byDirectory.get(at) ?? [])[0];
}

interface Complaint {
  readonly line: number;
  readonly reason: string;
}

interface Cargo {
  /** What it says, or why it says nothing of this manifest. */
  metadata(root: string, path: string): Promise<Metadata | Complaint>;
}

async function workingCargo({ cache, signal }: Reading): Promise<Cargo> {
  const home = join(cache, 'cargo');
  await mkdir(home, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new EnvironmentError(`make room for cargo: ${error.message}`, { cause: error });
  });
  const env = { PATH: toolPath(), HOME: homedir(), CARGO_HOME: home, CARGO_NET_OFFLINE: 'true', CARGO_TERM_COLOR: 'never', ...rustupHome() };
  const run = async (args: readonly string[]): Promise<ToolEnd> => {
    const limited = `ulimit -v ${MOST_KIB} && exec cargo "$@"`;
    const ended = await runTool({ command: 'sh', args: ['-c', limited, 'cargo', ...args], cwd: home, env, timeoutMs: TIMEOUT_MS, signal });
    if (ended === null) throw new EnvironmentError('read the crates: there is no sh here');
    return ended;
  };
  const asked = await run(['--version']);
  if (asked.status !== 0) {
    const why = asked.status === 127 ? 'there is no cargo here' : `cargo does not work here (${lastCauses(asked)})`;
    throw new EnvironmentError(
      `read the crates: ${why}: install Rust, with \`apt-get install cargo\` or from https://rustup.rs, where the builder finds it`,
    );
  }
  return {
    metadata: async (root, path) => {
      const ended = await run(['metadata', '--no-deps', '--offline', '--format-version', '1', '--manifest-path', join(root, path)]);
      if (ended.status !== 0) return complaintOf(ended, root);
      return metadata.parse(JSON.parse(ended.stdout.toString()));
    },
  };
}

/** Without the path of this checkout, which would be another one each time. */
function complaintOf(ended: ToolEnd, root: string): Complaint {
  const line = Number(/^\s*--> .*:(\d+):\d+$/m.exec(ended.stderr)?.[1] ?? 1);
  return { line, reason: `cargo does not read it: ${lastCauses(ended).replaceAll(`${root}/`, '')}` };
}

/** The causes that it names last are those that tell, and not the part of the file that it shows below. */
function lastCauses({ stderr, endedBy }: ToolEnd): string {
  const lines = stderr.split('\n').filter((line) => !/^\s*($|-->|Caused by:|(\d+ )?\|)/.test(line));
  const causes = lines.slice(-2).map((line) => line.trim().replace(/^error: /, ''));
  return causes.length === 0 ? `it ended by ${endedBy}` : causes.join(': ');
}

function rustupHome(): Record<string, string> {
  const { RUSTUP_HOME } = process.env;
  return RUSTUP_HOME === undefined ? {} : { RUSTUP_HOME };
}

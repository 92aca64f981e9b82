import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { askGo, editGo, type GoModule, MOST_MODULES } from '../../imports/goFiles';
import type { SourceFile } from '../../imports/types';
import { ArchiveRefused } from '../../pack';
import { TMP_INSIDE, TREE_INSIDE } from '../sandbox';
import type { Fetched } from './fetch';
import type { LaidLanguage, Place } from './place';
import { unpackEach } from './unpacked';

const MOST_BYTES = 1 << 20;
/** The first that knows workspaces. */
const OLDEST = '1.18';
const LAID: LaidLanguage = { env: { GOWORK: `${TMP_INSIDE}/workspace/go.work` } };

/** A module of the workspace. */
interface GoPlace {
  /** As the commands see it. */
  readonly directory: string;
  /** null where Go does not read it. */
  readonly says: GoModule | null;
}

type Versioned = GoModule['Replace'][number]['Old'];

interface GivenPlace extends GoPlace {
  readonly name: string;
  readonly says: GoModule;
}

type Answered = { readonly says: GoModule } | { readonly says: null; readonly line: number; readonly reason: string };

/**
 * A workspace of the tree's modules and all inputs, outside the tree. A version that one of them asks of an input is answered by the input
 * too, or the tool would look for it in the world. The tool writes its sums beside the workspace, so that stands where it may.
 * @returns a string where there can be no such workspace, which is no trouble of the surroundings'.
 */
export async function layGo(inputs: readonly Fetched[], place: Place): Promise<LaidLanguage | string> {
  const given = await unpackGiven(inputs, place);
  const file = place.tree.files.find(({ path }) => path === 'go.work');
  const [workspace = null] = file === undefined ? [] : await readEach([file.raw], place);
  if (workspace?.says === null) return `go.work:${workspace.line}: ${workspace.reason}`;
  const own = await ownModules(workspace?.says ?? null, place);
  if (typeof own === 'string') return own;

  const path = join(place.tmp, 'workspace', 'go.work');
  await mkdir(join(place.tmp, 'workspace'));
  const modules = [...own, ...given];
  const inputsByName = new Map(given.map((one) => [one.name, one.directory]));
  const go = newest([...modules, ...(workspace === null ? [] : [workspace])].flatMap(({ says }) => says?.Go ?? []));
  const lines = [...modules.map(({ directory }) => `use ${quoted(directory)}`), ...asked(modules, inputsByName)];
  if (file === undefined || workspace === null) {
    await writeFile(path, textOf([`go ${go}`, ...settings(own), ...lines]));
    return LAID;
  }
  // What else the tree's own says stays as it is.
  await writeFile(path, (await place.tree.read(file, MOST_BYTES)) ?? '');
  const { Use, Replace } = workspace.says;
  const drops = [...Use.map(({ DiskPath }) => `-dropuse=${DiskPath}`), ...Replace.map(({ Old }) => `-dropreplace=${shown(Old)}`)];
  await editGo('work', path, [`-go=${go}`, ...drops], place.reading);
  await appendFile(path, textOf([...lines, ...ownReplacements(workspace.says, inputsByName)]));
  return LAID;
}

/** What a module replaces counts only where it is built itself; a workspace would heed it. */
async function unpackGiven(inputs: readonly Fetched[], place: Place): Promise<GivenPlace[]> {
  const unpacked = await unpackEach(inputs, 'go', place);
  const files = unpacked.map(({ directory }) => join(directory, 'go.mod'));
  const answers = await readEach(
    files.map((file) => Buffer.from(file)),
    place,
  );
  const given: GivenPlace[] = [];
  for (const [at, { fetched, inside, directory }] of unpacked.entries()) {
    const input = `input ${fetched.input.module}/${fetched.input.artifact}`;
    const answered = answers[at];
    if (answered === undefined) continue;
    const { says } = answered;
    if (says === null) throw new ArchiveRefused(`${input} has a go.mod that Go does not read: line ${answered.line}: ${answered.reason}`);
    const name = says.Module?.Path ?? '';
    if (name === '') throw new ArchiveRefused(`${input} has a go.mod that names no module`);
    const drops = says.Replace.map(({ Old }) => `-dropreplace=${shown(Old)}`);
    await editGo('mod', join(directory, 'go.mod'), drops, place.reading);
    given.push({ name, directory: inside, says });
  }
  return given;
}

/**
 * Those that the tree's own workspace names, else all that Go would look at. One that Go does not read is left out where nothing says that
 * it is to be built; else the command that builds it says so.
 */
async function ownModules(workspace: GoModule | null, place: Place): Promise<GoPlace[] | string> {
  const used = workspace === null ? null : new Set(workspace.Use.map(({ DiskPath }) => posix.join(DiskPath, '.')));
  const isMeant = (directory: string): boolean => used?.has(directory) ?? directory === '.';
  const files = (used === null ? place.tree.own : place.tree.files)
    .filter(({ path }) => posix.basename(path) === 'go.mod')
    .filter((file) => isMeant(posix.dirname(file.path)) || (used === null && !isPassedOver(file)));
  if (files.length > MOST_MODULES)
    return `${files.length} modules are to be in one Go workspace, which has room for ${MOST_MODULES}: name those that are needed in a go.work`;
  const answers = await readEach(
    files.map(({ raw }) => raw),
    place,
  );
  return files.flatMap(({ path }, at): GoPlace[] => {
    const says = answers[at]?.says ?? null;
    const directory = posix.dirname(path);
    return says === null && !isMeant(directory) ? [] : [{ directory: posix.join(TREE_INSIDE, directory), says }];
  });
}

/** As `./...` does it. */
function isPassedOver({ path }: SourceFile): boolean {
  return path.split('/').some((part) => part.startsWith('_') || part.startsWith('.') || part === 'testdata');
}

async function readEach(paths: readonly Buffer[], { tree, reading }: Place): Promise<Answered[]> {
  if (paths.length === 0) return [];
  const answers = await askGo(tree.root, paths, reading);
  return paths.map((_, at) => {
    const { module, trouble } = answers.get(at) ?? {};
    return module === undefined ? { says: null, ...(trouble ?? { line: 1, reason: 'Go says nothing of it' }) } : { says: module };
  });
}

/** At each version that any of them asks for. */
function asked(modules: readonly GoPlace[], directoryOf: ReadonlyMap<string, string>): string[] {
  const found = new Set<string>();
  for (const { Path, Version } of modules.flatMap(({ says }) => says?.Require ?? [])) {
    const directory = directoryOf.get(Path);
    if (directory !== undefined) found.add(replacement({ Path, Version }, { Path: directory }));
  }
  return [...found].sort();
}

/** Directories as the commands see them. An input is in the workspace, and Go refuses one that replaces what it holds. */
function ownReplacements({ Replace }: GoModule, inputs: ReadonlyMap<string, string>): string[] {
  return Replace.filter(({ Old }) => !inputs.has(Old.Path)).map(({ Old, New }) => {
    const path = New.Version === undefined ? posix.resolve(TREE_INSIDE, New.Path) : New.Path;
    return replacement(Old, { ...New, Path: path });
  });
}

function replacement(before: Versioned, after: Versioned): string {
  const written = ({ Path, Version }: Versioned): string => (Version === undefined ? quoted(Path) : `${quoted(Path)} ${quoted(Version)}`);
  return `replace ${written(before)} => ${written(after)}`;
}

/** How programs are to run by default, which Go reads of a workspace alone where there is one: here of the one module, or the one at the root. */
function settings(own: readonly GoPlace[]): string[] {
  const main = own.length === 1 ? own[0] : own.find(({ directory }) => directory === TREE_INSIDE);
  return (main?.says?.GoDebug ?? []).map(({ Key, Value }) => `godebug ${Key}=${Value}`);
}

/** Go has 1.22 before 1.22rc1, and that before 1.22.0: a letter that sorts behind all others makes it so. */
function newest(versions: readonly string[]): string {
  const sorted = (version: string): string => version.replaceAll('.', 'z');
  return versions.reduce((most, one) => (sorted(one).localeCompare(sorted(most), 'en', { numeric: true }) > 0 ? one : most), OLDEST);
}

function shown({ Path, Version }: Versioned): string {
  return Version === undefined ? Path : `${Path}@${Version}`;
}

/** Go's strings and JSON's are written alike. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

function textOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

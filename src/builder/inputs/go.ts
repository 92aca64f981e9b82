import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { SourceFile, SourceTree } from '../../imports/types';
import { TMP_INSIDE, TREE_INSIDE } from '../sandbox';
import type { Fetched } from './fetch';
import type { LaidLanguage, Place } from './index';
import { unpackEach } from './unpacked';

const MOST_BYTES = 1 << 20;

/** A go.mod or go.work is lines; these are all that a workspace takes over. */
const VERSION = /^go\s+(\d+(?:\.\d+)*\S*)/m;
const COMMENT = /\s*\/\/.*$/gm;

interface GoFile {
  readonly directory: string;
  readonly text: string;
}

/**
 * A workspace of the tree's modules and all inputs, outside the tree. A version that one of them asks of an input is answered by the input
 * too, or the tool would look for it in the world. The tool writes its sums beside the workspace, so that stands where it may.
 */
export async function layGo(inputs: readonly Fetched[], place: Place): Promise<LaidLanguage> {
  const unpacked = await unpackEach(inputs, 'go', place);
  const given = await Promise.all(
    unpacked.map(async ({ directory, inside }): Promise<GoFile> => {
      const path = join(directory, 'go.mod');
      const text = withoutReplacements(await readFile(path, 'utf8'));
      await writeFile(path, text);
      return { directory: inside, text };
    }),
  );
  const workspace = await textOf(place.tree, 'go.work');
  const own = await modulesOf(place.tree, workspace);
  const everything = [...own, ...given].map(({ text }) => text);
  const placeOf = new Map(given.map(({ directory, text }) => [/^module\s+"?([^\s"]+)/m.exec(text)?.[1] ?? '', directory]));
  const lines = [
    `go ${newest([...everything, workspace ?? ''].map((text) => VERSION.exec(text)?.[1]))}`,
    ...[...own, ...given].map(({ directory }) => `use ${JSON.stringify(directory)}`),
    ...replacements(everything, placeOf),
    ...(workspace === null ? [] : ownReplacements(workspace)),
  ];
  await mkdir(join(place.tmp, 'workspace'));
  await writeFile(join(place.tmp, 'workspace', 'go.work'), `${lines.join('\n')}\n`);
  return { env: { GOWORK: `${TMP_INSIDE}/workspace/go.work` } };
}

/** What a module replaces counts only where it is built itself; a workspace would heed it. */
function withoutReplacements(text: string): string {
  return text.replace(/^replace\s*\([^)]*\)/gm, '').replace(/^replace[ \t].*$/gm, '');
}

/** Those that the tree's own workspace names, else all that git tracks. */
async function modulesOf(tree: SourceTree, workspace: string | null): Promise<GoFile[]> {
  const files = tree.own.filter(({ path }) => posix.basename(path) === 'go.mod' && !path.split('/').some((part) => /^[_.]|^testdata$/.test(part)));
  const used = workspace === null ? null : new Set(directivesOf(workspace, 'use').map((one) => posix.normalize(unquoted(one))));
  const kept = files.filter(({ path }) => used?.has(posix.dirname(path)) ?? true);
  return Promise.all(kept.map(async (file) => ({ directory: posix.join(TREE_INSIDE, posix.dirname(file.path)), text: await readText(tree, file) })));
}

/** At each version that any of them asks for. */
function replacements(modules: readonly string[], placeOf: ReadonlyMap<string, string>): string[] {
  const found = new Set<string>();
  for (const text of modules) {
    for (const line of directivesOf(text, 'require')) {
      const [name = '', version = ''] = line.split(/\s+/).map(unquoted);
      const directory = placeOf.get(name);
      if (directory !== undefined && version !== '') found.add(`replace ${name} ${version} => ${JSON.stringify(directory)}`);
    }
  }
  return [...found].sort();
}

function ownReplacements(workspace: string): string[] {
  return directivesOf(workspace, 'replace').map((line) => {
    const [before = '', after = ''] = line.split(/\s*=>\s*/);
    const path = unquoted(after.trim());
    return `replace ${before} => ${/^\.{1,2}\//.test(path) ? JSON.stringify(posix.join(TREE_INSIDE, path)) : after.trim()}`;
  });
}

/** What stands after a keyword, on its line or in its block. */
function directivesOf(text: string, keyword: string): string[] {
  const plain = text.replace(COMMENT, '');
  const blocks = [...plain.matchAll(new RegExp(`^${keyword}\\s*\\(([^)]*)\\)`, 'gm'))].flatMap(([, inner = '']) => inner.split('\n'));
  const lines = [...plain.matchAll(new RegExp(`^${keyword}[ \\t]+([^(\\s].*)$`, 'gm'))].map(([, line = '']) => line);
  return [...blocks, ...lines].map((line) => line.trim()).filter((line) => line !== '');
}

function newest(versions: ReadonlyArray<string | undefined>): string {
  const known = versions.filter((version) => version !== undefined);
  // The first that knows workspaces.
  return known.reduce((most, one) => (one.localeCompare(most, 'en', { numeric: true }) > 0 ? one : most), '1.18');
}

function unquoted(text: string): string {
  return text.replace(/^["`](.*)["`]$/, '$1');
}

async function textOf(tree: SourceTree, path: string): Promise<string | null> {
  const file = tree.own.find((one) => one.path === path);
  return file === undefined ? null : readText(tree, file);
}

async function readText(tree: SourceTree, file: SourceFile): Promise<string> {
  return (await tree.read(file, MOST_BYTES))?.toString('utf8') ?? '';
}

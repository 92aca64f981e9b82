/**
 * A tree at a target: a link to a directory of its own that holds exactly what was packed. A new one is unpacked beside
 * the old, looked at, and takes its place by renaming the link, so there is never half of it.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { z } from 'zod';
import { unpackArchive } from '../../pack';
import type { shapes } from '../../schema/declaration';
import { sha256OfFile } from '../artifacts';
import { ResourceFailed } from '../failures';
import { syncDirectory } from '../journal';
import { type Before, besides, keepBefore, putBack } from '../keeping';
import { normalTarget, statOf } from '../root';
import type { HostContext, Shape } from '../shape';
import { identityOf } from './file';

type Spec = z.infer<typeof shapes.archive>;

interface Memo {
  readonly path: string;
  readonly before: Before | null;
  /** Name of the unpacked tree. */
  readonly tree: string;
  readonly blob: string;
}

/** By path within the tree. */
type Listing = Record<string, { readonly seen: string; readonly sha256: string } | { readonly to: string } | { readonly isDirectory: true }>;

export const archive: Shape<Spec, Memo> = {
  target: (spec) => normalTarget(spec.path) ?? spec.path,

  async read({ spec, entry }, host) {
    const place = host.root.locate(spec.path);
    const found = statOf(place.path);
    if (found === null) return { holds: false, why: 'it is not there' };
    if (entry === null || !found.isSymbolicLink()) return { holds: false, why: 'it is not what this host unpacked' };
    if (entry.isPending && statOf(besides(place).fresh) !== null) return { holds: false, why: 'placing it was cut off' };
    if (entry.memo.blob !== spec.artifact.blob || readlinkSync(place.path) !== treePath(host, entry.memo.tree))
      return { holds: false, why: 'it is another version' };
    const changed = await findChanged(host, entry.memo.tree);
    return changed === null ? { holds: true, memo: entry.memo } : { holds: false, why: `${changed} was changed` };
  },

  async apply({ spec, entry, intend }, host) {
    const place = host.root.locate(spec.path);
    const blob = await host.artifacts.fetch(spec.artifact);
    const before = entry === null ? keepBefore(place, statOf(place.path), host.state) : entry.memo.before;
    const tree = `${createHash('sha256').update(spec.path).digest('hex').slice(0, 8)}-${spec.artifact.blob.slice(7, 19)}-${Date.now().toString(36)}`;
    // Unpacked before anything is said to be intended: an archive that is refused changes nothing.
    await unpack(host, tree, blob);
    intend({ path: spec.path, before, tree, blob: spec.artifact.blob });
    host.makeDirectories(place.parent);
    const { fresh, aside } = besides(place);
    rmSync(fresh, { force: true });
    symlinkSync(treePath(host, tree), fresh);
    if (statOf(place.path)?.isDirectory()) moveAside(place.path, aside, before);
    renameSync(fresh, place.path);
    syncDirectory(place.parent);
  },

  async remove({ path, before }, host) {
    const place = host.root.locate(path);
    rmSync(besides(place).fresh, { force: true });
    if (before !== null) return putBack(place, before, host.state);
    if (statOf(place.path)?.isSymbolicLink() !== true) return;
    rmSync(place.path);
    syncDirectory(place.parent);
  },
};

function moveAside(path: string, aside: string, before: Before | null): void {
  if (before?.kind !== 'directory') throw new ResourceFailed(`${path} is a directory that this host did not make`);
  if (statOf(aside) !== null) throw new ResourceFailed(`${path} is a directory again, and what was there first lies at ${aside}: remove one of them`);
  renameSync(path, aside);
}

function treePath(host: HostContext, tree: string): string {
  return join(host.state, 'trees', tree);
}

async function unpack(host: HostContext, tree: string, blob: string): Promise<void> {
  const path = treePath(host, tree);
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  await rm(path, { recursive: true, force: true });
  try {
    await unpackArchive(blob, path);
    const listing = await list(path);
    const file = openSync(`${path}.json`, 'w', 0o600);
    try {
      writeFileSync(file, JSON.stringify(listing));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    syncDirectory(dirname(path));
  } catch (error) {
    await rm(path, { recursive: true, force: true });
    await rm(`${path}.json`, { force: true });
    throw error;
  }
}

async function list(root: string): Promise<Listing> {
  const listing: Listing = {};
  for (const path of readdirSync(root, { recursive: true, withFileTypes: true }).map((one) => join(one.parentPath, one.name))) {
    const found = statOf(path);
    const name = path.slice(root.length + 1);
    if (found?.isSymbolicLink()) listing[name] = { to: readlinkSync(path) };
    else if (found?.isDirectory()) listing[name] = { isDirectory: true };
    else if (found?.isFile()) listing[name] = { seen: identityOf(found), sha256: await sha256OfFile(path, found.size) };
  }
  return listing;
}

/** The first path that is not as it was unpacked. What was added is no matter: programs write beside themselves. */
async function findChanged(host: HostContext, tree: string): Promise<string | null> {
  const root = treePath(host, tree);
  const listing = readListing(`${root}.json`);
  if (listing === null) return 'the list of its files';
  for (const [name, was] of Object.entries(listing)) {
    const path = join(root, name);
    const found = statOf(path);
    if (found === null) return name;
    if ('to' in was) {
      if (!found.isSymbolicLink() || readlinkSync(path) !== was.to) return name;
    } else if ('isDirectory' in was) {
      if (!found.isDirectory()) return name;
    } else if (
      identityOf(found) !== was.seen &&
      !(found.isFile() && sameMode(found.mode, was.seen) && (await sha256OfFile(path, found.size)) === was.sha256)
    )
      return name;
  }
  return null;
}

function sameMode(mode: number, seen: string): boolean {
  return seen.endsWith(` ${mode}`);
}

function readListing(path: string): Listing | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Listing;
  } catch {
    return null;
  }
}

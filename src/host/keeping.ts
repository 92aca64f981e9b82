/** What was on a target before this host came: kept whole in the state directory, and put back as it was. */
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  type Stats,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ResourceFailed } from './failures';
import { syncDirectory } from './journal';
import { type Place, statOf } from './root';

export type Before =
  | { readonly kind: 'file'; readonly kept: string; readonly mode: number; readonly uid: number; readonly gid: number }
  | { readonly kind: 'link'; readonly to: string }
  /** Moved aside, beside the target: a tree is not copied. */
  | { readonly kind: 'directory' };

/** Names that this host uses beside a target: the same each time, so that what a kill left is found again. */
export function besides({ parent, path }: Place): { readonly fresh: string; readonly aside: string } {
  const id = createHash('sha256').update(basename(path)).digest('hex').slice(0, 12);
  return { fresh: join(parent, `.tally-${id}.new`), aside: join(parent, `.tally-${id}.before`) };
}

/** @returns null where nothing was. Of a directory it says only that it is to be moved aside. */
export function keepBefore(place: Place, found: Stats | null, state: string): Before | null {
  if (found === null) return null;
  if (found.isSymbolicLink()) return { kind: 'link', to: readlinkSync(place.path) };
  if (found.isDirectory()) return { kind: 'directory' };
  if (!found.isFile()) throw new ResourceFailed(`${place.path} is neither a file nor a directory, and this host did not make it`);
  const kept = join(state, 'kept', randomBytes(10).toString('hex'));
  mkdirSync(dirname(kept), { recursive: true, mode: 0o700 });
  copyWhole(place.path, kept, 0o600);
  return { kind: 'file', kept: basename(kept), mode: found.mode & 0o7777, uid: found.uid, gid: found.gid };
}

/** Puts it in the place of whatever this host made there, in one step where the system has one. */
export function putBack(place: Place, before: Before, state: string): void {
  const { fresh, aside } = besides(place);
  rmSync(fresh, { force: true });
  if (before.kind === 'directory') {
    // Put back already, or never moved.
    if (statOf(aside) === null) return;
    rmSync(place.path, { force: true });
    renameSync(aside, place.path);
  } else {
    mkdirSync(place.parent, { recursive: true });
    if (before.kind === 'link') symlinkSync(before.to, fresh);
    else {
      const kept = join(state, 'kept', before.kept);
      // Put back before a kill; the journal did not hear of it.
      if (statOf(kept) === null) return;
      copyWhole(kept, fresh, before.mode);
      if (process.getuid?.() === 0) chownSync(fresh, before.uid, before.gid);
      chmodSync(fresh, before.mode);
    }
    renameSync(fresh, place.path);
  }
  syncDirectory(place.parent);
}

function copyWhole(from: string, to: string, mode: number): void {
  copyFileSync(from, to);
  chmodSync(to, mode);
  const file = openSync(to, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** A file with a content and a mode: written beside its target, synced, renamed. */
import { createHash } from 'node:crypto';
import { createReadStream, rmSync, type Stats } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import type { z } from 'zod';
import type { SealedSecret, shapes } from '../../schema/declaration';
import { sha256OfFile } from '../artifacts';
import { ResourceFailed } from '../failures';
import { syncDirectory } from '../journal';
import { type Before, besides, keepBefore, putBack } from '../keeping';
import { normalTarget, type Place, statOf } from '../root';
import type { HostContext, Shape, Task } from '../shape';

type Spec = z.infer<typeof shapes.file>;

interface Memo {
  readonly path: string;
  readonly before: Before | null;
  /** What is filled into it, as it came: sealed. */
  readonly secrets?: readonly SealedSecret[];
  /** The file as it was when its content was last compared; as long as it is this, it need not be read. */
  readonly seen?: string;
}

/** Clocks of file systems tick in jiffies: a change this soon after another may show the same time. */
const TICK_MS = 100;

export const file: Shape<Spec, Memo> = {
  target: (spec) => normalTarget(spec.path) ?? spec.path,

  async read({ spec, print, entry }, host) {
    const place = host.root.locate(spec.path);
    const found = statOf(place.path);
    if (found === null) return { holds: false, why: 'it is not there' };
    if (entry === null) return { holds: false, why: 'it is there and was not kept yet' };
    if (!found.isFile()) return { holds: false, why: 'it is not a file' };
    if (entry.isPending && statOf(besides(place).fresh) !== null) return { holds: false, why: 'writing it was cut off' };
    if ((found.mode & 0o7777) !== Number.parseInt(spec.mode, 8))
      return { holds: false, why: `its mode is ${(found.mode & 0o7777).toString(8).padStart(4, '0')}` };
    const seen = identityOf(found);
    if (entry.held === print && entry.memo.seen === seen) return { holds: true, memo: entry.memo };
    const content = await contentOf(spec, host);
    if (found.size !== content.size || (await sha256OfFile(place.path, found.size)) !== content.sha256)
      return { holds: false, why: 'its content is another' };
    const isOld = Date.now() - found.ctimeMs > TICK_MS;
    const { seen: _, ...memo } = entry.memo;
    return { holds: true, memo: isOld ? { ...memo, seen } : memo };
  },

  async apply(task, host) {
    const { spec } = task;
    const place = host.root.locate(spec.path);
    const content = await contentOf(spec, host);
    const source = spec.artifact === undefined ? content.bytes : await host.artifacts.fetch(spec.artifact);
    adopt(task, place, host);
    if (statOf(place.path)?.isDirectory()) throw new ResourceFailed(`${place.path} is a directory that this host did not make`);
    host.makeDirectories(place.parent);
    await write(besides(place).fresh, place, source, Number.parseInt(spec.mode, 8));
  },

  async remove({ path, before }, host) {
    const place = host.root.locate(path);
    rmSync(besides(place).fresh, { force: true });
    if (before !== null) return putBack(place, before, host.state);
    const found = statOf(place.path);
    if (found === null || found.isDirectory()) return;
    rmSync(place.path);
    syncDirectory(place.parent);
  },
};

/** What was there first is kept once, whatever is declared later. */
function adopt({ spec, entry, intend }: Task<Spec, Memo>, place: Place, host: HostContext): void {
  const before = entry === null ? keepBefore(place, statOf(place.path), host.state) : entry.memo.before;
  if (before?.kind === 'directory') throw new ResourceFailed(`${place.path} is a directory that this host did not make`);
  intend({ path: spec.path, before, ...(spec.secrets === undefined ? {} : { secrets: Object.values(spec.secrets) }) });
}

async function write(fresh: string, place: Place, source: string | Buffer, mode: number): Promise<void> {
  await rm(fresh, { force: true });
  try {
    const file = await open(fresh, 'wx', 0o600);
    try {
      if (typeof source !== 'string') await file.writeFile(source);
      else for await (const chunk of createReadStream(source)) await file.writeFile(chunk as Buffer);
      await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, place.path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
  syncDirectory(place.parent);
}

interface Content {
  readonly bytes: Buffer;
  readonly size: number;
  readonly sha256: string;
}

async function contentOf({ content = '', artifact, secrets }: Spec, host: HostContext): Promise<Content> {
  if (artifact !== undefined) return { bytes: Buffer.alloc(0), size: artifact.size, sha256: artifact.blob.slice('sha256:'.length) };
  const bytes = Buffer.from(secrets === undefined ? host.root.fill(content) : await host.secrets.fill(content, secrets));
  return { bytes, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

export function identityOf({ mtimeMs, ctimeMs, size, ino, mode }: Stats): string {
  return `${mtimeMs} ${ctimeMs} ${size} ${ino} ${mode}`;
}

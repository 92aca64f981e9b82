import { constants } from 'node:fs';
import { link, mkdir, open, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { createGunzip } from 'node:zlib';
import { type ArchiveLimits, ArchiveRefused, defaultLimits, type Entry, inspectArchive, readEntries } from './inspect';
import { partsOf } from './paths';

/**
 * Unpacks into a directory that does not exist yet; every file is synced before this resolves. On any failure the
 * directory is gone again.
 * @throws ArchiveRefused before anything is written; whatever the disk says while writing.
 */
export async function unpackArchive(file: string, targetDir: string, limits: ArchiveLimits = defaultLimits): Promise<void> {
  await inspectArchive(file, limits);
  await mkdir(targetDir, { mode: 0o755 });
  try {
    await readEntries(file, createGunzip(), (entry) => write(targetDir, entry));
    await sync(targetDir);
  } catch (error) {
    await rm(targetDir, { recursive: true, force: true });
    throw error;
  }
}

async function write(root: string, entry: Entry): Promise<void> {
  const { header } = entry;
  const parts = partsOf(header.name);
  // The first reading has refused all of these; the second trusts it only as far as it must.
  if (parts === null) throw new ArchiveRefused(`${header.name} has changed between two readings`);
  const target = path.join(root, ...parts);
  if (header.type === 'file' || header.type === 'contiguous-file') {
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, header.mode & 0o777, entry as AsyncIterable<Buffer>);
    return;
  }
  entry.resume();
  if (header.type === 'directory') {
    await mkdir(target, { recursive: true, mode: 0o755 });
    return;
  }
  await mkdir(path.dirname(target), { recursive: true });
  const linked = header.linkname ?? '';
  if (header.type === 'symlink') await symlink(linked, target);
  else await link(path.join(root, ...(partsOf(linked) ?? [])), target);
}

async function writeFile(target: string, mode: number, content: AsyncIterable<Buffer>): Promise<void> {
  const file = await open(target, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, mode);
  try {
    for await (const chunk of content) await file.writeFile(chunk);
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function sync(dir: string): Promise<void> {
  const handle = await open(dir, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

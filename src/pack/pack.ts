import { isUtf8 } from 'node:buffer';
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, readdir, readlink, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Pack, pack } from 'tar-stream';
import { ArchiveRefused } from './inspect';
import { followLink } from './paths';

/** One time for everything: the time of a commit would make a new artifact of an unchanged one. */
const MTIME = new Date(0);
const OWNER = { uid: 0, gid: 0, uname: '', gname: '', mtime: MTIME };

interface Entry {
  readonly name: string;
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'symlink';
  readonly isExecutable: boolean;
  readonly target: string;
}

/**
 * Packs a tree as tar+gzip: entries sorted by their bytes, one time, no owner, modes 0644 and 0755, hard links as files.
 * @throws ArchiveRefused for what no machine should be sent: a link out of the tree, a device, a name that is no UTF-8.
 */
export async function packDirectory(dir: string, outFile: string): Promise<void> {
  const entries: Entry[] = [];
  await walk(dir, [], entries);
  await write(entries, outFile);
}

/**
 * Packs these files of a tree alone, below `prefix`, in the same form; directories get no entries of their own.
 * @throws ArchiveRefused as packDirectory does.
 */
export async function packFiles(dir: string, names: readonly string[], outFile: string, prefix = ''): Promise<void> {
  const sorted = [...new Set(names)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const entries: Entry[] = [];
  for (const name of sorted) {
    const entry = await entryOf(`${dir}/${name}`, `${prefix}${name}`);
    if (entry.kind !== 'directory') entries.push(entry);
  }
  await write(entries, outFile);
}

async function write(entries: readonly Entry[], outFile: string): Promise<void> {
  const links = new Map(entries.filter((entry) => entry.kind === 'symlink').map((entry) => [entry.name, entry.target]));
  for (const [name, target] of links) {
    if (followLink(name.split('/'), target, links) === 'outside') throw new ArchiveRefused(`${name} is a link out of the tree, to ${target}`);
  }
  const tar = pack();
  const written = pipeline(tar, createGzip({ level: 6 }), createWriteStream(outFile, { mode: 0o600 }));
  // A failure of the one ends the other; whichever speaks first is the reason.
  try {
    await Promise.all([written, add(tar, entries).catch((error: Error) => tar.destroy(error))]);
  } catch (error) {
    await rm(outFile, { force: true });
    throw error;
  }
}

async function add(tar: Pack, entries: readonly Entry[]): Promise<void> {
  for (const { name, path, kind, isExecutable, target } of entries) {
    if (kind === 'directory') tar.entry({ ...OWNER, name: `${name}/`, type: 'directory', mode: 0o755 });
    else if (kind === 'symlink') tar.entry({ ...OWNER, name, type: 'symlink', linkname: target, mode: 0o777 });
    else {
      const { size } = await stat(path);
      await pipeline(createReadStream(path), tar.entry({ ...OWNER, name, type: 'file', mode: isExecutable ? 0o755 : 0o644, size }));
    }
  }
  tar.finalize();
}

async function walk(root: string, parts: readonly string[], entries: Entry[]): Promise<void> {
  const names = await readdir([root, ...parts].join('/'), { encoding: 'buffer' });
  for (const raw of names.sort(Buffer.compare)) {
    const own = raw.toString('utf8');
    const name = [...parts, own].join('/');
    if (!isUtf8(raw)) throw new ArchiveRefused(`${name} has a name that is no UTF-8: rename it`);
    const entry = await entryOf(`${root}/${name}`, name);
    entries.push(entry);
    if (entry.kind === 'directory') await walk(root, [...parts, own], entries);
  }
}

async function entryOf(path: string, name: string): Promise<Entry> {
  const found = await lstat(path);
  const entry = { name, path, isExecutable: (found.mode & 0o111) !== 0, target: '' };
  if (found.isDirectory()) return { ...entry, kind: 'directory' };
  if (found.isFile()) return { ...entry, kind: 'file' };
  if (found.isSymbolicLink()) return { ...entry, kind: 'symlink', target: await targetOf(path, name) };
  throw new ArchiveRefused(`${name} is neither a file, a directory nor a link`);
}

async function targetOf(path: string, name: string): Promise<string> {
  const raw = await readlink(path, { encoding: 'buffer' });
  if (!isUtf8(raw)) throw new ArchiveRefused(`${name} is a link to a name that is no UTF-8: rename it`);
  return raw.toString('utf8');
}

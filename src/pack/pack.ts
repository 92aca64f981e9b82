import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, readdir, readlink, stat } from 'node:fs/promises';
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
  const entries = await walk(dir, Buffer.from(dir), []);
  const links = new Map(entries.filter((entry) => entry.kind === 'symlink').map((entry) => [entry.name, entry.target]));
  for (const [name, target] of links) {
    if (followLink(name.split('/'), target, links) === 'outside') throw new ArchiveRefused(`${name} is a link out of the tree, to ${target}`);
  }
  const tar = pack();
  const written = pipeline(tar, createGzip({ level: 6 }), createWriteStream(outFile, { mode: 0o600 }));
  // A failure of the one ends the other; whichever speaks first is the reason.
  await Promise.all([written, add(tar, entries).catch((error: Error) => tar.destroy(error))]);
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

async function walk(root: string, dir: Buffer, parts: readonly string[]): Promise<Entry[]> {
  const names = await readdir(dir, { encoding: 'buffer' });
  const entries: Entry[] = [];
  for (const raw of names.sort(Buffer.compare)) {
    const own = raw.toString('utf8');
    const name = [...parts, own].join('/');
    if (!Buffer.from(own, 'utf8').equals(raw)) throw new ArchiveRefused(`${name} has a name that is no UTF-8: rename it`);
    const path = `${root}/${name}`;
    const found = await lstat(path);
    const entry = { name, path, isExecutable: (found.mode & 0o111) !== 0, target: '' };
    if (found.isDirectory()) entries.push({ ...entry, kind: 'directory' }, ...(await walk(root, Buffer.from(path), [...parts, own])));
    else if (found.isFile()) entries.push({ ...entry, kind: 'file' });
    else if (found.isSymbolicLink()) entries.push({ ...entry, kind: 'symlink', target: await readlink(path) });
    else throw new ArchiveRefused(`${name} is neither a file, a directory nor a link`);
  }
  return entries;
}

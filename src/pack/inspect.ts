import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGunzip, type Gunzip } from 'node:zlib';
import { type Extract, extract, type Header } from 'tar-stream';
import { followLink, partsOf } from './paths';

/** The archive is not one to unpack; its message is one line for an operator. Final: the same bytes are refused again. */
export class ArchiveRefused extends Error {
  override readonly name = 'ArchiveRefused';
}

export interface ArchiveLimits {
  readonly entries: number;
  /** Bytes of all files together, unpacked. */
  readonly bytes: number;
  /** Unpacked bytes for a packed one, counted above `freeBytes`. */
  readonly ratio: number;
  readonly freeBytes: number;
}

export const defaultLimits: ArchiveLimits = { entries: 200_000, bytes: 4 * 1024 ** 3, ratio: 200, freeBytes: 16 * 1024 ** 2 };

/** No file system of ours takes a longer name. */
const NAME_MAX_BYTES = 255;
const PATH_MAX_BYTES = 4095;

interface Seen {
  /** What each path is; `implied` is a directory that an entry lies in, not yet named by an entry of its own. */
  readonly kinds: Map<string, 'file' | 'directory' | 'symlink' | 'implied'>;
  readonly links: Map<string, string>;
}

/**
 * Reads every header of a tar+gzip file and writes nothing.
 * @throws ArchiveRefused naming the entry and what is wrong with it.
 */
export async function inspectArchive(file: string, limits: ArchiveLimits = defaultLimits): Promise<void> {
  const { size: packed } = await stat(file);
  const seen: Seen = { kinds: new Map(), links: new Map() };
  let bytes = 0;
  const gunzip = createGunzip();
  // Counted here and not by the headers: a bomb need not tell the truth about itself.
  gunzip.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limits.bytes) gunzip.destroy(new ArchiveRefused(`unpacks to more than ${limits.bytes} bytes`));
    else if (bytes > limits.freeBytes && bytes > packed * limits.ratio) {
      gunzip.destroy(new ArchiveRefused(`unpacks to more than ${limits.ratio} times its size`));
    }
  });
  await readEntries(file, gunzip, async (entry) => {
    admit(entry.header, seen, limits);
    entry.resume();
  });
  for (const [name, target] of seen.links) {
    if (followLink(name.split('/'), target, seen.links) === 'outside') throw new ArchiveRefused(`${name} is a link that leads out, to ${target}`);
  }
}

function admit(header: Header, { kinds, links }: Seen, limits: ArchiveLimits): void {
  if (Math.max(Buffer.byteLength(header.name), Buffer.byteLength(header.linkname ?? '')) > PATH_MAX_BYTES) {
    throw new ArchiveRefused(`${header.name.slice(0, 60)}… has a path that is too long`);
  }
  const parts = partsOf(header.name);
  if (parts === null) throw new ArchiveRefused(`${JSON.stringify(header.name)} is not inside the archive`);
  if (parts.length === 0) return;
  const name = parts.join('/');
  // A name that is no UTF-8 is read with this in it, and would be written as another.
  if (name.includes('\ufffd') || header.linkname?.includes('\ufffd') === true) throw new ArchiveRefused(`${name} has a name that is no UTF-8`);
  if (parts.some((part) => Buffer.byteLength(part) > NAME_MAX_BYTES)) throw new ArchiveRefused(`${name.slice(0, 60)}… has a name that is too long`);
  if (kinds.size >= limits.entries) throw new ArchiveRefused(`has more than ${limits.entries} entries`);
  for (let depth = 1; depth < parts.length; depth += 1) {
    const parent = parts.slice(0, depth).join('/');
    const kind = kinds.get(parent);
    if (kind === 'symlink' || kind === 'file')
      throw new ArchiveRefused(`${name} lies below ${parent}, which is a ${kind === 'file' ? 'file' : 'link'}`);
    if (kind === undefined) kinds.set(parent, 'implied');
  }
  const before = kinds.get(name);
  if (before !== undefined && !(before === 'implied' && header.type === 'directory')) throw new ArchiveRefused(`${name} is there twice`);
  const target = header.linkname ?? '';
  switch (header.type) {
    case 'directory':
      kinds.set(name, 'directory');
      break;
    case 'file':
    case 'contiguous-file':
      kinds.set(name, 'file');
      break;
    case 'symlink':
      if (target === '' || target.includes('\0')) throw new ArchiveRefused(`${name} is a link to nothing`);
      if (target.startsWith('/')) throw new ArchiveRefused(`${name} is an absolute link, to ${target}`);
      kinds.set(name, 'symlink');
      links.set(name, target);
      break;
    case 'link': {
      const linked = partsOf(target)?.join('/');
      if (linked === undefined || kinds.get(linked) !== 'file')
        throw new ArchiveRefused(`${name} is a hard link to ${target}, which is no earlier file of the archive`);
      kinds.set(name, 'file');
      break;
    }
    default:
      throw new ArchiveRefused(`${name} is a ${header.type ?? 'nameless kind of entry'}, which is never unpacked`);
  }
}

/** A hash of each entry, its mode and where it leads, by its name. */
export async function hashesOfArchive(file: string): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  await readEntries(file, createGunzip(), async (entry) => {
    const hash = createHash('sha256');
    for await (const chunk of entry as AsyncIterable<Buffer>) hash.update(chunk);
    const { name, type, mode, linkname } = entry.header;
    hashes.set(name, `${hash.digest('hex')} ${type} ${mode} ${linkname ?? ''}`);
  });
  return hashes;
}

/** One entry of an archive being read: its header, and its content as a stream. */
export type Entry = Extract extends AsyncIterable<infer Item> ? Item : never;

/**
 * Gives each entry of a tar+gzip file to `take`, one after the other; `take` reads or resumes it.
 * @throws ArchiveRefused for bytes that are no archive; whatever `take` or the disk says.
 */
export async function readEntries(file: string, gunzip: Gunzip, take: (entry: Entry) => Promise<void>): Promise<void> {
  const tar = extract();
  const fed = pipeline(createReadStream(file), gunzip, tar);
  const taken = (async () => {
    for await (const entry of tar) await take(entry);
  })();
  const failures = (await Promise.allSettled([taken, fed])).flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failures.length === 0) return;
  // One failure ends the other stream too; the refusal is the reason, the rest its echo.
  throw failures.find((failure) => failure instanceof ArchiveRefused) ?? refusalOf(failures[0]);
}

/** What zlib or tar say of broken bytes is a refusal too; what the disk says is not. */
function refusalOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null || !('message' in error)) return error;
  const code = 'code' in error ? String(error.code) : '';
  if (code !== '' && !code.startsWith('Z_') && !code.startsWith('ERR_STREAM')) return error;
  return new ArchiveRefused(`is no tar archive packed with gzip: ${String(error.message)}`);
}

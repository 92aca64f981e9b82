import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Entry, openPromise } from 'yauzl';
import { ZipFile } from 'yazl';
import { type ArchiveLimits, ArchiveRefused } from './inspect';
import { partsOf } from './paths';

/** Zip archives of Python: written so that the same files give the same bytes, and laid out as an installer lays them. */

interface WheelFile {
  readonly name: string;
  readonly content: Buffer;
  readonly isExecutable: boolean;
}

/** A wheel is held in memory while it is read. */
const wheelLimits: ArchiveLimits = { entries: 50_000, bytes: 512 * 1024 ** 2, ratio: 200, freeBytes: 16 * 1024 ** 2 };

/** The first time that a zip file can hold. It is written in local time, so this is the same bytes in every zone. */
const FIRST_TIME = new Date(1980, 0, 1);
const DIST_INFO = /^[^/]+\.dist-info\//;
/** These name the other files, and are named in no list themselves. */
const UNLISTED = /^[^/]+\.dist-info\/RECORD(\.jws|\.p7s)?$/;
const INSTALLED_DATA = /^[^/]+\.data\/(?:purelib|platlib)\//;
const ANY_DATA = /^[^/]+\.data\//;

/**
 * Writes the wheel again with its entries sorted (its own description last, as the format recommends), one time, two modes, and a RECORD
 * that says just that.
 * @throws ArchiveRefused for what is no wheel.
 */
export async function normaliseWheel(file: string, outFile: string): Promise<void> {
  const files = await readWheel(file, wheelLimits);
  const record = files.find(({ name }) => name.endsWith('.dist-info/RECORD') && UNLISTED.test(name));
  if (record === undefined) throw new ArchiveRefused('is no wheel: it has no .dist-info/RECORD');
  const listed = files.filter(({ name }) => !UNLISTED.test(name)).sort(byPlace);
  const lines = [...listed.map(({ name, content }) => `${quoted(name)},sha256=${hashOf(content)},${content.length}`), `${quoted(record.name)},,`];
  const zip = new ZipFile();
  for (const { name, content, isExecutable } of [...listed, { ...record, content: Buffer.from(`${lines.join('\n')}\n`) }]) {
    zip.addBuffer(content, name, { mtime: FIRST_TIME, forceDosTimestamp: true, mode: isExecutable ? 0o100755 : 0o100644, compressionLevel: 6 });
  }
  zip.end();
  try {
    await pipeline(zip.outputStream, createWriteStream(outFile, { mode: 0o600 }));
  } catch (error) {
    await rm(outFile, { force: true });
    throw error;
  }
}

/**
 * Unpacks what an installer would make importable into `targetDir`, which may hold other wheels..
 * @throws ArchiveRefused for what is no wheel, or a file that is there already.
 */
export async function unpackWheel(file: string, targetDir: string): Promise<void> {
  for (const { name, content } of await readWheel(file, wheelLimits)) {
    const place = name.replace(INSTALLED_DATA, '');
    if (ANY_DATA.test(place)) continue;
    const path = join(targetDir, place);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content, { flag: 'wx', mode: 0o644 }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EEXIST' ? new ArchiveRefused(`holds ${place}, and so does another wheel`) : error;
    });
  }
}

/** A hash of each file and its mode, by its name. */
export async function hashesOfWheel(file: string): Promise<Map<string, string>> {
  const files = await readWheel(file, wheelLimits);
  // That the list of the others differs, when one of them does, is nothing of its own.
  return new Map(files.filter(({ name }) => !UNLISTED.test(name)).map((one) => [one.name, `${hashOf(one.content)} ${one.isExecutable}`]));
}

async function readWheel(file: string, limits: ArchiveLimits): Promise<WheelFile[]> {
  const files = new Map<string, WheelFile>();
  let bytes = 0;
  try {
    const zip = await openPromise(file, { lazyEntries: true });
    try {
      for await (const entry of zip.eachEntry() as AsyncIterable<Entry>) {
        const name = entry.fileName;
        if (name.endsWith('/')) continue;
        if (partsOf(name) === null) throw new ArchiveRefused(`${JSON.stringify(name)} is not inside the archive`);
        if (files.has(name)) throw new ArchiveRefused(`${name} is there twice`);
        if (files.size >= limits.entries) throw new ArchiveRefused(`has more than ${limits.entries} entries`);
        bytes += entry.uncompressedSize;
        if (bytes > limits.bytes) throw new ArchiveRefused(`unpacks to more than ${limits.bytes} bytes`);
        const chunks: Buffer[] = [];
        // The reader checks that no more comes than the entry says.
        for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer);
        files.set(name, { name, content: Buffer.concat(chunks), isExecutable: ((entry.externalFileAttributes >>> 16) & 0o111) !== 0 });
      }
    } finally {
      zip.close();
    }
  } catch (error) {
    if (error instanceof ArchiveRefused || (error instanceof Error && 'code' in error && 'syscall' in error)) throw error;
    throw new ArchiveRefused(`is no zip archive: ${error instanceof Error ? error.message : String(error)}`);
  }
  return [...files.values()];
}

function byPlace(a: WheelFile, b: WheelFile): number {
  const last = Number(DIST_INFO.test(a.name)) - Number(DIST_INFO.test(b.name));
  return last !== 0 ? last : Buffer.compare(Buffer.from(a.name), Buffer.from(b.name));
}

function hashOf(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64url');
}

/** As in CSV. */
function quoted(name: string): string {
  return /[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
}

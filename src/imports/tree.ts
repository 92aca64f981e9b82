import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { EnvironmentError } from '../domain/errors';
import { directoryOf, isCarried, nameOf } from './paths';
import { howItEnded, runTool } from './run';
import type { SourceFile, SourceTree } from './types';

const GIT_TIMEOUT_MS = 60_000;
/** A checkout has no more: half a million paths. */
const MOST_LIST_BYTES = 256 << 20;

/** @throws EnvironmentError when git does not list it. */
export async function sourceTree(root: string, signal: AbortSignal): Promise<SourceTree> {
  const files = await trackedFiles(root, signal);
  const crates = new Set(files.filter(({ path }) => nameOf(path) === 'Cargo.toml').map(({ path }) => directoryOf(path)));
  return {
    root,
    files,
    own: files.filter(({ path }) => !isCarried(path, crates)),
    read: (file, mostBytes) => readWhole(Buffer.concat([Buffer.from(`${root}/`), file.raw]), mostBytes),
  };
}

/** `-z` gives names as they are; the mode tells files from links and submodules. A path in conflict would stand there twice. */
async function trackedFiles(root: string, signal: AbortSignal): Promise<SourceFile[]> {
  const listed = await runTool({
    command: 'git',
    // The tree is the builder's own, whoever its files belong to.
    args: ['-c', 'safe.directory=*', '-c', 'core.fsmonitor=false', 'ls-files', '--stage', '-z'],
    cwd: root,
    env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_OPTIONAL_LOCKS: '0' },
    timeoutMs: GIT_TIMEOUT_MS,
    signal,
    mostBytes: MOST_LIST_BYTES,
  });
  if (listed === null) throw new EnvironmentError('list the files of the commit: there is no git here: install it');
  if (listed.status !== 0) throw new EnvironmentError(`list the files of the commit: git ${howItEnded(listed, GIT_TIMEOUT_MS)}`);
  const files: SourceFile[] = [];
  for (let from = 0; from < listed.stdout.length; ) {
    const to = listed.stdout.indexOf(0, from);
    const entry = listed.stdout.subarray(from, to === -1 ? listed.stdout.length : to);
    from = to === -1 ? listed.stdout.length : to + 1;
    const tab = entry.indexOf(0x09);
    if (tab === -1 || !entry.subarray(0, 3).equals(Buffer.from('100'))) continue;
    const raw = entry.subarray(tab + 1);
    files.push({ path: shown(raw), raw });
  }
  return files;
}

/** A byte that belongs to no UTF-8 as `\xNN`, all else as it is. */
function shown(raw: Buffer): string {
  if (isUtf8(raw)) return raw.toString();
  let text = '';
  for (let at = 0; at < raw.length; ) {
    const length = [1, 2, 3, 4].find((n) => at + n <= raw.length && isUtf8(raw.subarray(at, at + n)));
    text += length === undefined ? `\\x${raw.toString('hex', at, at + 1)}` : raw.toString('utf8', at, at + length);
    at += length ?? 1;
  }
  return text;
}

/** No link is followed and no pipe waited for: the tree was written by anyone. */
async function readWhole(path: Buffer, mostBytes: number): Promise<Buffer | null> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const found = await file.stat();
      return found.isFile() && found.size <= mostBytes ? await file.readFile() : null;
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (['ENOENT', 'ELOOP', 'ENOTDIR', 'ENXIO'].includes(code)) return null;
    throw new EnvironmentError(`read a file of the commit: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

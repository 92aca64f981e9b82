import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, realpath, rename, rm, stat, statfs, utimes } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EnvironmentError, UsageError } from '../domain/errors';
import { removeGroups } from './cgroup';

/**
 * The one directory of a builder: its key, its journal, a home for each module that lives between builds, and work directories
 * that do not. One process has it at a time, and whatever an earlier one left in `work` is gone before the first request.
 */
export interface BuilderHome {
  directory: string;
  /** Where programs of ours are kept compiled; made when it is wanted. */
  programs: string;
  /** Prefix of this builder's control groups. */
  groups: string;
  /** A new, empty work directory. `remove` never throws; what it cannot remove goes at the next start. */
  newWork(): Promise<Work>;
  /** Marked as used now. */
  homeOf(module: string): Promise<string>;
  /** Removes the homes that were not used for longest until the rest fits. */
  prune(mostBytes: number): Promise<void>;
  freeBytes(): Promise<number>;
  release(): Promise<void>;
}

export interface Work {
  directory: string;
  tree: string;
  tmp: string;
  remove(): Promise<void>;
}

const run = promisify(execFile);
const DU_TIMEOUT_MS = 120_000;
const REMOVE_TIMEOUT_MS = 300_000;

export async function openHome(directory: string): Promise<BuilderHome> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const home = await realpath(directory);
  const id = createHash('sha256').update(home).digest('hex').slice(0, 16);
  const lock = await lockHome(`tally-builder-${id}`, home);
  const groups = `tally-builder-${id}`;
  const workRoot = join(home, 'work');
  const homes = join(home, 'homes');
  // Measuring is what costs: only what was used since is measured again.
  const measured = new Map<string, number>();
  await removeGroups(groups);
  await removeTree(workRoot);
  await mkdir(workRoot, { recursive: true, mode: 0o700 });
  await mkdir(homes, { recursive: true, mode: 0o700 });

  return {
    directory: home,
    programs: join(home, 'programs'),
    groups,
    async newWork() {
      const work = join(workRoot, randomBytes(6).toString('hex'));
      const tree = join(work, 'tree');
      const tmp = join(work, 'tmp');
      await mkdir(work, { mode: 0o700 });
      await mkdir(tmp);
      await chmod(tmp, 0o1777);
      return { directory: work, tree, tmp, remove: () => removeTree(work).catch(() => undefined) };
    },
    async homeOf(module) {
      const path = join(homes, module);
      await mkdir(path, { recursive: true });
      measured.delete(path);
      await utimes(path, new Date(), new Date());
      return path;
    },
    async prune(mostBytes) {
      const used = await Promise.all(
        (await readdir(homes)).map(async (module) => ({ path: join(homes, module), at: (await stat(join(homes, module))).mtimeMs })),
      );
      used.sort((a, b) => b.at - a.at);
      let sum = 0;
      for (const { path } of used) {
        const bytes = measured.get(path) ?? (await measure(path));
        measured.set(path, bytes);
        sum += bytes;
        if (sum > mostBytes) {
          // Out of the way first: a half-removed cache is never used.
          const doomed = join(workRoot, randomBytes(6).toString('hex'));
          await rename(path, doomed);
          measured.delete(path);
          await removeTree(doomed);
        }
      }
    },
    async freeBytes() {
      const { bavail, bsize } = await statfs(home);
      return bavail * bsize;
    },
    release: () => new Promise((resolve) => lock.close(() => resolve())),
  };
}

/** An abstract socket is bound once, and the kernel lets go of it however its holder dies. */
function lockHome(name: string, directory: string): Promise<ReturnType<typeof createServer>> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') reject(new EnvironmentError(`could not lock ${directory}: ${error.message}`, { cause: error }));
      else reject(new UsageError(`another builder works in ${directory}: give this one its own TALLY_BUILDER_HOME`));
    });
    server.listen({ path: `\0${name}` }, () => {
      server.unref();
      resolve(server);
    });
  });
}

async function measure(path: string): Promise<number> {
  const { stdout } = await run('du', ['-sk', path], { timeout: DU_TIMEOUT_MS });
  return Number.parseInt(stdout, 10) * 1_024;
}

/** Go makes the directories of its module cache read-only, which only root removes as they are. */
async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await run('chmod', ['-R', 'u+rwX', path], { timeout: REMOVE_TIMEOUT_MS });
    await rm(path, { recursive: true, force: true });
  }
}

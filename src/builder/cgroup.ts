import { randomBytes } from 'node:crypto';
import { access, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { kill } from './processes';

/**
 * Control groups, version 1 and 2, where this process may make them. Where it may not, a limit of memory is kept by measuring,
 * and a limit of processes not at all: the time-out still ends them.
 */

export interface Group {
  /** The files a process writes itself into. */
  procs: string[];
  limitsMemory: boolean;
  ranOutOfMemory(): Promise<boolean>;
  remove(): Promise<void>;
}

interface Place {
  controller: 'memory' | 'pids';
  version: 1 | 2;
  /** Directories in which a group may be made, nearest first. */
  parents: string[];
}

export async function createGroup(prefix: string, limits: { memoryBytes?: number; processes: number }): Promise<Group | null> {
  const groupName = `${prefix}-${randomBytes(5).toString('hex')}`;
  const made = new Map<Place['controller'], { directory: string; version: 1 | 2 }>();
  for (const place of await findPlaces()) {
    if (place.controller === 'memory' && limits.memoryBytes === undefined) continue;
    const value = place.controller === 'memory' ? (limits.memoryBytes ?? 0) : limits.processes;
    const candidates = place.parents.map((parent) => join(parent, groupName));
    const directory = await firstThat(candidates, (candidate) => makeGroup(candidate, place, value));
    if (directory !== null) made.set(place.controller, { directory, version: place.version });
  }
  const directories = [...new Set([...made.values()].map((one) => one.directory))];
  if (directories.length === 0) return null;
  const memory = made.get('memory');
  return {
    procs: directories.map((directory) => join(directory, 'cgroup.procs')),
    limitsMemory: memory !== undefined,
    async ranOutOfMemory() {
      if (memory === undefined) return false;
      const text = await readFile(join(memory.directory, memory.version === 1 ? 'memory.oom_control' : 'memory.events'), 'utf8').catch(() => '');
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0;
    },
    async remove() {
      for (const directory of directories) await removeGroup(directory);
    },
  };
}

/** Ends and removes the groups that an earlier process of the same builder left. */
export async function removeGroups(prefix: string): Promise<void> {
  for (const parent of new Set((await findPlaces()).flatMap((place) => place.parents))) {
    const left = (await readdir(parent).catch(() => [])).filter((entry) => entry.startsWith(`${prefix}-`));
    for (const entry of left) {
      const inside = await readFile(join(parent, entry, 'cgroup.procs'), 'utf8').catch(() => '');
      for (const pid of inside.split('\n').map(Number)) if (pid > 0) kill(pid);
      await removeGroup(join(parent, entry));
    }
  }
}

async function makeGroup(directory: string, place: Place, value: number): Promise<boolean> {
  let isNew = false;
  try {
    isNew = (await mkdir(directory, { recursive: true })) !== undefined;
    const memoryFile = place.version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
    await writeFile(join(directory, place.controller === 'pids' ? 'pids.max' : memoryFile), String(value), { flag: 'r+' });
    const swap = place.version === 1 ? ['memory.memsw.limit_in_bytes', String(value)] : ['memory.swap.max', '0'];
    if (place.controller === 'memory') await writeFile(join(directory, swap[0] ?? ''), swap[1] ?? '', { flag: 'r+' }).catch(() => undefined);
    await access(join(directory, 'cgroup.procs'));
    return true;
  } catch {
    // In version 2 it may be the group that already limits the other.
    if (isNew) await rmdir(directory).catch(() => undefined);
    return false;
  }
}

/** A group can be removed once the kernel has let go of its last process, which may be a moment after its death. */
async function removeGroup(directory: string): Promise<void> {
  for (let tried = 0; tried < 50; tried++) {
    try {
      await rmdir(directory);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY') return;
      await pause(20);
    }
  }
}

async function findPlaces(): Promise<Place[]> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8').catch(() => '')).split('\n').map((line) => line.split(' '));
  const own = (await readFile('/proc/self/cgroup', 'utf8').catch(() => '')).split('\n').map((line) => line.split(':'));
  return (['memory', 'pids'] as const).flatMap((controller): Place[] => {
    const first = mounts.find(([, , type, options]) => type === 'cgroup' && options?.split(',').includes(controller));
    const second = mounts.find(([, , type]) => type === 'cgroup2');
    const mount = (first ?? second)?.[1];
    if (mount === undefined) return [];
    const line = own.find(([number, names]) => (first === undefined ? number === '0' : names?.split(',').includes(controller)));
    const version = first === undefined ? 2 : 1;
    return [{ controller, version, parents: [...new Set([join(mount, line?.[2] ?? '/'), mount])] }];
  });
}

async function firstThat(candidates: string[], accepts: (candidate: string) => Promise<boolean>): Promise<string | null> {
  for (const candidate of candidates) if (await accepts(candidate)) return candidate;
  return null;
}

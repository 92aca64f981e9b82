import { readdir, readFile } from 'node:fs/promises';
import { type ProcessStat, parseStat } from '../processes/stat';

const PAGE_BYTES = 4_096;

export function kill(pid: number | null): void {
  if (pid === null) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

/**
 * Resident memory of a process and all its descendants. In a PID namespace an orphan becomes a child of its first process, so
 * none is missed. Shared pages count once per process: the sum is never too low.
 */
export async function residentBytes(root: number): Promise<number> {
  const all = await readAll();
  const children = new Map<number, ProcessStat[]>();
  for (const line of all) children.set(line.parent, [...(children.get(line.parent) ?? []), line]);
  let sum = all.find((line) => line.pid === root)?.residentPages ?? 0;
  const open = [root];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    for (const child of children.get(pid) ?? []) {
      sum += child.residentPages;
      open.push(child.pid);
    }
  }
  return sum * PAGE_BYTES;
}

async function readAll(): Promise<ProcessStat[]> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)));
  return lines.flatMap((line) => (line === null ? [] : [parseStat(line)]));
}

import { readdir, readFile } from 'node:fs/promises';

const PAGE = 4_096;

export function kill(pid: number | null): void {
  if (pid === null) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

interface ProcessLine {
  pid: number;
  parent: number;
  residentBytes: number;
}

/**
 * Resident memory of a process and all its descendants. In a PID namespace an orphan becomes a child of its first process, so
 * none is missed. Shared pages count once per process: the sum is never too low.
 */
export async function residentBytes(root: number): Promise<number> {
  const all = await readAll();
  const children = new Map<number, ProcessLine[]>();
  for (const line of all) children.set(line.parent, [...(children.get(line.parent) ?? []), line]);
  let sum = all.find((line) => line.pid === root)?.residentBytes ?? 0;
  const open = [root];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    for (const child of children.get(pid) ?? []) {
      sum += child.residentBytes;
      open.push(child.pid);
    }
  }
  return sum;
}

async function readAll(): Promise<ProcessLine[]> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)));
  return lines.flatMap((line) => {
    if (line === null) return [];
    // The name in parentheses may hold anything; the fields begin after the last one.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    return [{ pid: Number.parseInt(line, 10), parent: Number(fields[1]), residentBytes: Number(fields[21]) * PAGE }];
  });
}

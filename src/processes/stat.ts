/** What the kernel says of processes, from /proc/PID/stat. */
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessStat {
  readonly pid: number;
  /** A zombie has ended and waits to be reaped: not every process 1 reaps. */
  readonly isZombie: boolean;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** In ticks since boot: with the pid and the boot's id it names a process for ever. */
  readonly start: string;
  readonly residentPages: number;
}

/** null: there is no such process. */
export function statOf(pid: number): ProcessStat | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return null;
  }
}

export function parseStat(text: string): ProcessStat {
  // The name stands in parentheses and may hold anything, parentheses and blanks too: the fields begin after the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', parent, group, session] = fields;
  return {
    pid: Number.parseInt(text, 10),
    isZombie: state === 'Z' || state === 'X',
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    start: fields[19] ?? '',
    residentPages: Number(fields[21]),
  };
}

/** Live processes that are as `isWanted` says. */
export function livePids(isWanted: (stat: ProcessStat) => boolean): number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    const stat = statOf(Number(entry));
    return stat !== null && !stat.isZombie && isWanted(stat) ? [stat.pid] : [];
  });
}

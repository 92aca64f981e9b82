/** Processes by pid and start time: a pid alone may be another's by now. Sessions hold all that a service started. */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { EnvironmentError } from '../domain/errors';
import { livePids, statOf } from '../processes/stat';

export interface ProcessMark {
  readonly pid: number;
  /** In ticks since boot, as /proc has it. */
  readonly start: string;
}

const POLL_MS = 25;
const KILLED_WITHIN_MS = 5_000;

/** "pid start boot" as a process wrote it of itself; null when it cannot be read or is of an earlier boot. */
export function readMark(path: string): ProcessMark | null {
  const [pid = '', start = '', boot = ''] = (readOr(path) ?? '').trim().split(' ');
  if (!/^\d+$/.test(pid) || !/^\d+$/.test(start) || boot !== bootId()) return null;
  return { pid: Number(pid), start };
}

export function isAlive({ pid, start }: ProcessMark): boolean {
  const found = statOf(pid);
  return found !== null && !found.isZombie && found.start === start;
}

/** Live processes of the session that this one began, itself included; it may be gone. */
function sessionOf({ pid, start }: ProcessMark): number[] {
  const leader = statOf(pid);
  if (leader !== null && leader.start !== start) return [];
  // No process gets the number of a session that still has members.
  return livePids(({ session }) => session === pid);
}

/** SIGTERM, and SIGKILL for what is left after the time; returns when nothing of the session is left. */
export async function endSession(mark: ProcessMark, withinMs: number): Promise<void> {
  const deadline = Date.now() + withinMs;
  if (withinMs > 0) send(sessionOf(mark), 'SIGTERM');
  while (sessionOf(mark).length > 0 && Date.now() < deadline) await pause(POLL_MS);
  const killed = Date.now() + KILLED_WITHIN_MS;
  for (let left = sessionOf(mark); left.length > 0; left = sessionOf(mark)) {
    if (Date.now() > killed)
      throw new EnvironmentError(`process ${left[0]} does not end, not even by SIGKILL: look at it with ps -o pid,stat,args ${left[0]}`);
    send(left, 'SIGKILL');
    await pause(POLL_MS);
  }
}

function send(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has just ended.
    }
  }
}

function bootId(): string {
  return (readOr('/proc/sys/kernel/random/boot_id') ?? '').trim();
}

function readOr(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

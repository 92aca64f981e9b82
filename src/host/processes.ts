/** Processes by pid and start time: a pid alone may be another's by now. Sessions hold all that a service started. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { EnvironmentError } from '../domain/errors';

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
  const found = statusOf(pid);
  return found !== null && found.state !== 'Z' && found.start === start;
}

/** Live processes of the session that this one began, itself included; it may be gone. */
function sessionOf({ pid, start }: ProcessMark): number[] {
  const leader = statusOf(pid);
  if (leader !== null && leader.start !== start) return [];
  // No process gets the number of a session that still has members.
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    const found = statusOf(Number(entry));
    return found !== null && found.state !== 'Z' && found.session === pid ? [Number(entry)] : [];
  });
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

function statusOf(pid: number): { readonly state: string; readonly session: number; readonly start: string } | null {
  const text = readOr(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The name stands in parentheses and may hold anything, parentheses too.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', , , session = ''] = fields;
  return { state, session: Number(session), start: fields[19] ?? '' };
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

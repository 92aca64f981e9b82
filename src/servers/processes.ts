import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { EnvironmentError } from '../domain/errors';
import { livePids, statOf } from '../processes/stat';
import { lastLine } from './run';

export interface ProcessSpec {
  /** names the pid, log and fingerprint files */
  name: string;
  /** an existing folder that `uid` may write to */
  home: string;
  command: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
  stopSignal: NodeJS.Signals;
  /** what else the process depends on; a running process is adopted only if nothing of it has changed */
  config?: string;
}

/** How long a server may take to end by itself before its whole session is killed. */
const GRACE_MS = 20_000;

/**
 * The child writes its own pid file before it becomes the server, so that no death of the parent leaves a server that
 * nobody knows. A pid alone may be another's by now: start time and boot id tell.
 */
const WRITE_PID_THEN_EXEC = `
printf '%s %s %s\\n' "$$" "$(cut -d' ' -f22 /proc/$$/stat)" "$(cat /proc/sys/kernel/random/boot_id)" >"$1.new" &&
mv "$1.new" "$1" && shift && exec "$@"`;

/** Starts a server in a session of its own: Ctrl-C in the terminal reaches us, and we stop it in order. */
export function startProcess(spec: ProcessSpec): ChildProcess {
  mkdirSync(spec.home, { recursive: true });
  const log = logFile(spec);
  renameIfThere(log, `${log}.old`);
  const output = openSync(log, 'w', 0o600);
  if (spec.uid !== undefined && spec.gid !== undefined) chownSync(log, spec.uid, spec.gid);
  writeFileSync(fingerprintFile(spec), fingerprint(spec));
  try {
    const child = spawn('/bin/sh', ['-c', WRITE_PID_THEN_EXEC, 'sh', pidFile(spec), spec.command, ...spec.args], {
      cwd: spec.home,
      env: spec.env,
      detached: true,
      stdio: ['ignore', output, output],
      ...(spec.uid === undefined ? {} : { uid: spec.uid }),
      ...(spec.gid === undefined ? {} : { gid: spec.gid }),
    });
    child.on('error', () => undefined); // shows as an exit before it was ready
    child.unref();
    return child;
  } finally {
    closeSync(output);
  }
}

/** The process of an earlier run that is still alive, and whether it runs exactly as `spec` says. */
export function leftover(spec: ProcessSpec): { pid: number; isSame: boolean } | null {
  const alive = readAlive(pidFile(spec));
  if (alive === null) return null;
  return { ...alive, isSame: readText(fingerprintFile(spec)) === fingerprint(spec) };
}

/** Every live process that has a pid file in `home`. */
export function leftoversIn(home: string): { name: string; pid: number }[] {
  let files: string[];
  try {
    files = readdirSync(home).filter((file) => file.endsWith('.pid'));
  } catch {
    return [];
  }
  return files.flatMap((file) => {
    const alive = readAlive(join(home, file));
    return alive === null ? [] : [{ name: file.slice(0, -'.pid'.length), pid: alive.pid }];
  });
}

/** Asks the process to end, and kills its whole session if it does not; returns when none of it is left. */
export async function stopProcess(pid: number, signal: NodeJS.Signals): Promise<void> {
  kill(pid, signal);
  await until(GRACE_MS, () => !members(pid).includes(pid));
  // Helpers of a server that ended in order need a moment to notice.
  if (await until(500, () => members(pid).length === 0)) return;
  const isGone = await until(5_000, () => {
    const left = members(pid);
    for (const member of left) kill(member, 'SIGKILL');
    return left.length === 0;
  });
  if (isGone) return;
  throw new EnvironmentError(`process ${pid} does not end, not even by SIGKILL: look at it with ps -o pid,stat,args -g ${pid}`);
}

/** Waits until `probe` no longer throws. Ends early when the process does. */
export async function waitUntilReady(spec: ProcessSpec, pid: number, timeoutMs: number, probe: () => Promise<void>): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      await probe();
      return;
    } catch (error) {
      if (members(pid).length === 0) {
        throw new EnvironmentError(`${spec.name} ended while starting: ${lastLog(spec)} (see ${logFile(spec)})`);
      }
      if (Date.now() > deadline) {
        const why = error instanceof Error ? error.message : String(error);
        throw new EnvironmentError(`${spec.name} does not answer after ${timeoutMs / 1000} s: ${lastLine(why)} (see ${logFile(spec)})`);
      }
      await pause(100);
    }
  }
}

export function forget(spec: Pick<ProcessSpec, 'home' | 'name'>): void {
  rmSync(pidFile(spec), { force: true });
}

async function until(timeoutMs: number, condition: () => boolean): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (Date.now() < deadline) {
    if (condition()) return true;
    await pause(25);
  }
  return condition();
}

function pidFile(spec: Pick<ProcessSpec, 'home' | 'name'>): string {
  return join(spec.home, `${spec.name}.pid`);
}

function fingerprintFile(spec: ProcessSpec): string {
  return join(spec.home, `${spec.name}.fingerprint`);
}

function logFile(spec: ProcessSpec): string {
  return join(spec.home, `${spec.name}.log`);
}

function fingerprint(spec: ProcessSpec): string {
  const { command, args, config = '', uid = null } = spec;
  return createHash('sha256')
    .update(JSON.stringify([command, args, config, uid]))
    .digest('hex');
}

function lastLog(spec: ProcessSpec): string {
  return lastLine(readText(logFile(spec)) ?? '').slice(0, 300) || 'it said nothing';
}

function readAlive(file: string): { pid: number } | null {
  const [pidText, startTime, bootId] = (readText(file) ?? '').trim().split(' ');
  const pid = Number(pidText);
  if (!Number.isInteger(pid) || pid <= 1) return null;
  if (bootId !== readText('/proc/sys/kernel/random/boot_id')?.trim()) return null;
  const stat = statOf(pid);
  return stat !== null && !stat.isZombie && stat.start === startTime ? { pid } : null;
}

/** The live processes of the session or group that `leader` leads. */
function members(leader: number): number[] {
  return livePids(({ session, group }) => session === leader || group === leader);
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EnvironmentError } from '../domain/errors';
import type { Group } from './cgroup';
import { createGroup } from './cgroup';
import { kill, residentBytes } from './processes';

/**
 * One command of a module in namespaces of its own: it sees its tree, its home and a temporary directory at constant places,
 * no process but its own, no file of the builder's, and a network only where that is said. When it ends, or must end, the
 * PID namespace ends with it, and with that every process it ever started, `setsid` or not.
 */

// Constant, so that what a tool writes of its own path into an artifact is the same on each builder.
export const TREE_INSIDE = '/tmp/build';
export const HOME_INSIDE = '/tmp/home';
export const TMP_INSIDE = '/tmp';

/** A directory of the builder's that a command sees below its `/tmp`. */
export interface Mount {
  from: string;
  /** A path below `/tmp`. */
  at: string;
}

export interface IsolatedCommand {
  command: string;
  /** Directories outside; `tmp` is the command's `/tmp`. */
  tree: string;
  home: string;
  tmp: string;
  /** A directory that the command must not see: the builder's own. */
  hide: string;
  mounts?: readonly Mount[];
  /** The command may write to what is mounted. */
  mayWriteMounts?: boolean;
  /** All of its environment. It is set inside: what a module chose (LD_PRELOAD) must touch nothing that runs outside. */
  env: Record<string, string>;
  /** `none` is a loopback of its own and nothing else. */
  network: 'none' | 'host';
  timeoutMs: number;
  memoryBytes?: number;
  /** Asked twice a second; a reason stops the command. */
  watch?: () => Promise<string | null>;
  signal: AbortSignal;
  onOutput(chunk: Buffer): void;
}

export type Ending =
  /** Status 128 + n is a death by signal n, as a shell says it. */
  { kind: 'exit'; status: number } | { kind: 'timeout' } | { kind: 'memory' } | { kind: 'watch'; reason: string } | { kind: 'aborted' };

export interface Sandbox {
  /** How memory is kept to its limit here, for the log of a build that has one. */
  run(command: IsolatedCommand): Promise<Ending & { memoryBy: 'cgroup' | 'polling' | null }>;
}

// The builder may have died before the signal of its death was asked for: each of the two asks afterwards who its parent is.
const ENTER = `
[ "$PPID" = "$1" ] || exit 1
shift
while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done
shift
UNSHARE=$$ exec "$@"
`;

// Runs as PID 1 of the namespace. The number in /proc/self/stat is still the one outside, since /proc is mounted later.
const INIT = `
network=$1 tree=$2 home=$3 tmp=$4 hide=$5 command=$6 access=$7
shift 7
read -r outside name state parent rest < /proc/self/stat
[ "$parent" = "$UNSHARE" ] || exit 1
set -e
if [ "$network" = none ]; then ip link set lo up 2>/dev/null || ifconfig lo up; fi
mount --bind "$tree" "$tmp/build"
mount --bind "$home" "$tmp/home"
while [ "$1" != -- ]; do
  mount --bind "$1" "$tmp/$2"
  if [ "$access" = ro ]; then mount -o remount,ro,bind "$tmp/$2"; fi
  shift 2
done
shift
mount --rbind "$tmp" /tmp
if [ -d "$hide" ]; then mount -t tmpfs -o size=64k,mode=0755 tally "$hide"; fi
if [ -d /dev/shm ]; then mount -t tmpfs -o mode=1777 tally /dev/shm; fi
mount -t proc proc /proc
cd ${TREE_INSIDE}
set +e
echo "$outside" >&3
exec 3>&- 2>&1
setpriv --inh-caps=-all --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+setfcap --no-new-privs env -i -- "$@" /bin/sh -e -c "$command"
exit $?
`;

const POLL_MS = 500;
const SETUP_TIMEOUT_MS = 20_000;
const PROCESSES_MAX = 4_096;

/** @param groups the prefix of this builder's control groups, by which it finds what an earlier process of it left. */
export function createSandbox(groups: string): Sandbox {
  let namespaces: string[] | null = null;

  return {
    async run(command) {
      namespaces ??= await findNamespaces();
      await mkdir(join(command.tmp, 'build'), { recursive: true });
      await mkdir(join(command.tmp, 'home'), { recursive: true });
      for (const { at } of command.mounts ?? []) await mkdir(join(command.tmp, at), { recursive: true });
      const group = await createGroup(groups, {
        ...(command.memoryBytes === undefined ? {} : { memoryBytes: command.memoryBytes }),
        processes: PROCESSES_MAX,
      });
      try {
        const ending = await runOne(command, namespaces, group);
        const by = group?.limitsMemory === true ? 'cgroup' : 'polling';
        const memoryBy = command.memoryBytes === undefined ? null : by;
        return { ...((await group?.ranOutOfMemory()) ? { kind: 'memory' } : ending), memoryBy };
      } finally {
        await group?.remove();
      }
    },
  };
}

/** Root needs no user namespace; everyone else does, and some systems forbid them. */
async function findNamespaces(): Promise<string[]> {
  const ways = process.getuid?.() === 0 ? [[], ['--user', '--map-root-user']] : [['--user', '--map-root-user']];
  const said: string[] = [];
  for (const way of ways) {
    const outcome = await trial([
      'unshare',
      ...way,
      '--pid',
      '--mount',
      '--ipc',
      '--net',
      '--fork',
      '--kill-child',
      '--mount-proc',
      'setpriv',
      '--no-new-privs',
      'true',
    ]);
    if (outcome === null) return way;
    said.push(outcome);
  }
  throw new EnvironmentError(
    `this builder cannot isolate a build (${said.at(-1) ?? 'unshare failed'}): run it as root, or allow user namespaces to it (util-linux is needed too)`,
  );
}

/** `null` when it ended well, else its last words. */
function trial([program = '', ...args]: string[]): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: systemPath(process.env.PATH) },
      timeout: SETUP_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    let words = '';
    child.stderr.on('data', (chunk: Buffer) => {
      words = (words + chunk.toString()).slice(-500);
    });
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code) => resolve(code === 0 ? null : (words.trim().split('\n').at(-1) ?? '') || `status ${code}`));
  });
}

function runOne(command: IsolatedCommand, namespaces: string[], group: Group | null): Promise<Ending> {
  const { tree, home, tmp, hide, network } = command;
  // The builder's death reaches `unshare` by the first flag and the namespace by --kill-child: a killed builder leaves nothing behind.
  const [program = '', ...args] = [
    ...['setpriv', '--pdeathsig', 'KILL', '--', 'sh', '-c', ENTER, 'tally-enter', String(process.pid), ...(group?.procs ?? []), '--'],
    ...['unshare', ...namespaces, '--pid', '--mount', '--ipc', ...(network === 'none' ? ['--net'] : []), '--fork', '--kill-child', '--'],
    ...[
      'sh',
      '-c',
      INIT,
      'tally-init',
      network,
      tree,
      home,
      tmp,
      hide,
      command.command,
      command.mayWriteMounts === true ? 'rw' : 'ro',
      ...(command.mounts ?? []).flatMap(({ from, at }) => [from, at]),
      '--',
      ...Object.entries(command.env).map(([key, value]) => `${key}=${value}`),
    ],
  ];
  const child = spawn(program, args, {
    cwd: '/',
    env: { PATH: systemPath(process.env.PATH) },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  return supervise(child, command, group);
}

function supervise(child: ChildProcess, command: IsolatedCommand, group: Group | null): Promise<Ending> {
  return new Promise((resolve, reject) => {
    let init: number | null = null;
    let setupWords = '';
    let stopped: Ending | null = null;

    // Killing PID 1 of the namespace lets `unshare` wait until the kernel has ended all the others.
    const stop = (why: Ending): void => {
      stopped ??= why;
      kill(init ?? child.pid ?? null);
    };
    const onAbort = (): void => stop({ kind: 'aborted' });
    const deadline = setTimeout(() => stop({ kind: 'timeout' }), Math.min(command.timeoutMs, 2 ** 31 - 1));
    const poll = setInterval(() => {
      void look().then(
        (why) => {
          if (why !== null) stop(why);
        },
        // What cannot be measured now is measured at the next turn.
        () => undefined,
      );
    }, POLL_MS);
    const end = (): void => {
      clearTimeout(deadline);
      clearInterval(poll);
      command.signal.removeEventListener('abort', onAbort);
    };

    async function look(): Promise<Ending | null> {
      const reason = await command.watch?.();
      if (reason !== undefined && reason !== null) return { kind: 'watch', reason };
      if (command.memoryBytes === undefined || group?.limitsMemory === true || init === null) return null;
      return (await residentBytes(init)) > command.memoryBytes ? { kind: 'memory' } : null;
    }

    command.signal.addEventListener('abort', onAbort, { once: true });
    if (command.signal.aborted) onAbort();
    child.stdout?.on('data', (chunk: Buffer) => command.onOutput(chunk));
    child.stderr?.on('data', (chunk: Buffer) => {
      setupWords = (setupWords + chunk.toString()).slice(-1_000);
    });
    const told = child.stdio[3];
    if (told !== null && told !== undefined && 'on' in told) {
      told.on('data', (chunk: Buffer) => {
        init = Number(chunk.toString().trim());
        if (stopped !== null) kill(init);
      });
    }
    child.once('error', (error) => {
      end();
      reject(new EnvironmentError(`could not start a command: ${error.message}`, { cause: error }));
    });
    child.once('close', (code, signal) => {
      end();
      if (stopped !== null) resolve(stopped);
      else if (init === null)
        reject(new EnvironmentError(`could not isolate the build: ${setupWords.trim().split('\n').at(-1) ?? `status ${code ?? signal}`}`));
      else resolve({ kind: 'exit', status: code ?? 137 });
    });
  });
}

/** The builder's own path without what a package manager put before it, and with the places where a system keeps its tools. */
export function systemPath(path: string | undefined): string {
  const own = (path ?? '').split(':').filter((entry) => entry.startsWith('/') && !entry.includes('/node_modules/'));
  const system = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  return [...new Set([...own, ...system])].join(':');
}

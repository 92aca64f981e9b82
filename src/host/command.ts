/** Runs a command to its end, or kills it with everything that it started. */
import { spawn } from 'node:child_process';
import { Overtaken } from './failures';

export interface Ran {
  readonly isDone: boolean;
  /** How it ended and its last line, for a report: "ended with status 1: no such table". */
  readonly says: string;
}

const TAIL = 4_096;
/** Of a line that was cut off in front: half a secret would not be known for one. */
const CUT = 256;
const LAST_WORDS_MS = 200;

/** What a command sees of this host's environment: nothing that the host alone may know. */
export function commandEnvironment(): Record<string, string> {
  const kept = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'USER', 'LOGNAME', 'TMPDIR'];
  return Object.fromEntries(kept.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}

export function runCommand(
  [program = '', ...args]: readonly string[],
  { directory, timeoutMs, signal }: { readonly directory: string; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new Overtaken());
    const child = spawn(program, args, { cwd: directory, env: commandEnvironment(), detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let tail = '';
    let isLate = false;
    const collect = (chunk: Buffer): void => {
      tail = (tail + chunk.toString('utf8')).slice(-TAIL);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const kill = (): void => {
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // All of it has ended.
      }
    };
    const late = setTimeout(() => {
      isLate = true;
      kill();
    }, timeoutMs);
    signal.addEventListener('abort', kill, { once: true });
    const end = (settle: () => void): void => {
      clearTimeout(late);
      signal.removeEventListener('abort', kill);
      // What it left running has its output closed, or waits for nobody.
      child.stdout.destroy();
      child.stderr.destroy();
      settle();
    };
    child.once('error', (error) => end(() => resolve({ isDone: false, says: `could not be run: ${error.message}` })));
    const ended = (code: number | null, by: NodeJS.Signals | null): void => {
      const last = lastLineOf(tail);
      const ending = by === null ? `ended with status ${code ?? 'unknown'}` : `ended by ${by}`;
      const how = isLate ? `did not end within ${timeoutMs} ms` : ending;
      end(() => (signal.aborted ? reject(new Overtaken()) : resolve({ isDone: code === 0, says: last === '' ? how : `${how}: ${last}` })));
    };
    child.once('exit', (code, by) => {
      // Its last words are on their way, unless something that it left running holds the other end.
      const waiting = setTimeout(() => ended(code, by), LAST_WORDS_MS);
      child.once('close', () => {
        clearTimeout(waiting);
        ended(code, by);
      });
    });
  });
}

function lastLineOf(tail: string): string {
  // One that only points at the line before it says nothing.
  const line =
    tail
      .trimEnd()
      .split('\n')
      .findLast((one) => /[\p{L}\p{N}]/u.test(one)) ?? '';
  const isCut = tail.length === TAIL && tail.trimEnd().length === line.length;
  return (isCut ? line.slice(CUT) : line).trim();
}

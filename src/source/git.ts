/** Runs one git command: its own process group, a time-out, bounded output, nothing of the user's settings, no prompt. */
import { spawn } from 'node:child_process';
import { hideCredentials } from './address';

export interface GitResult {
  readonly ok: boolean;
  readonly stdout: string;
  /** One line that says why, when it is not ok; without credentials. */
  readonly reason: string;
  readonly isTimeout: boolean;
}

export interface GitOptions {
  readonly timeoutMs: number;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly maxBytes?: number;
}

const PASSED_ON = [
  'PATH',
  'HOME',
  'SSH_AUTH_SOCK',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'NO_PROXY',
  'GIT_SSL_CAINFO',
  'SSL_CERT_FILE',
];

function environment(extra: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const passed = Object.fromEntries(PASSED_ON.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
  return {
    ...passed,
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'true',
    SSH_ASKPASS: 'true',
    GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o ConnectTimeout=10',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ALLOW_PROTOCOL: 'file:https:http:ssh:git',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_OPTIONAL_LOCKS: '0',
    ...extra,
  };
}

/** Never throws: what went wrong is in the result. */
export function runGit(args: readonly string[], options: GitOptions): Promise<GitResult> {
  const { timeoutMs, signal } = options;
  const maxBytes = options.maxBytes ?? 16 * 1024 * 1024;
  return new Promise((resolve) => {
    const child = spawn('git', ['-c', 'core.hooksPath=/dev/null', '-c', 'gc.auto=0', ...args], {
      cwd: options.cwd ?? '/',
      env: environment(options.env ?? {}),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const out: Buffer[] = [];
    let bytes = 0;
    let errors = '';
    let stopped: string | null = null;
    const stop = (why: string): void => {
      if (stopped !== null || child.pid === undefined) return;
      stopped = why;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    };
    const timer = setTimeout(() => stop(`no answer within ${timeoutMs / 1_000} s`), timeoutMs);
    const onAbort = (): void => stop('stopped');
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) stop(`answered more than ${maxBytes} bytes`);
      else out.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString('utf8')).slice(-8_192);
    });
    const end = (ok: boolean, spawnError: string | null): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      const isTimeout = stopped?.startsWith('no answer') === true;
      resolve({
        ok: ok && stopped === null,
        stdout: Buffer.concat(out).toString('utf8'),
        reason: stopped ?? spawnError ?? reasonIn(errors),
        isTimeout,
      });
    };
    child.once('error', (error) => end(false, `git cannot be run: ${error.message}`));
    child.once('close', (code) => end(code === 0, null));
  });
}

/** The line that says why: git's `fatal:`, else ssh's or the remote's last words. */
function reasonIn(errors: string): string {
  const lines = hideCredentials(errors)
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const fatal =
    lines.find((line) => line.startsWith('fatal: ') && !line.startsWith('fatal: Could not read from remote')) ??
    lines.find((line) => line.startsWith('fatal: '));
  const words =
    fatal?.startsWith('fatal: Could not read from remote') === true
      ? (lines.find((line) => !line.startsWith('fatal: ')) ?? fatal)
      : (fatal ?? lines.at(-1));
  return (words ?? 'git gave no reason').replace(/^(fatal|error|remote): /, '').slice(0, 300);
}

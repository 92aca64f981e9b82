import { spawn } from 'node:child_process';
import { EnvironmentError } from '../domain/errors';

/** A tool or a program of ours, which reads files and runs nothing of the module. */

export interface Tool {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** All of its environment: what a tool would heed of ours is given by name. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: Buffer;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Of its output; more ends it. 64 MiB by default. */
  readonly mostBytes?: number;
}

export interface ToolEnd {
  /** null: it was ended, by `signal`. */
  readonly status: number | null;
  readonly endedBy: 'timeout' | 'output' | NodeJS.Signals | null;
  readonly stdout: Buffer;
  /** Its last words. */
  readonly stderr: string;
}

const MOST_BYTES = 64 << 20;
const LAST_WORDS = 4_000;

/** @throws EnvironmentError when it cannot be started, or the signal says stop. @returns null when there is no such command. */
export function runTool(tool: Tool): Promise<ToolEnd | null> {
  return new Promise((resolve, reject) => {
    if (tool.signal.aborted) return reject(new EnvironmentError(`${tool.command}: was stopped`));
    const child = spawn(tool.command, tool.args, { cwd: tool.cwd, env: tool.env, stdio: ['pipe', 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let stderr = '';
    let endedBy: ToolEnd['endedBy'] = null;
    const end = (why: 'timeout' | 'output'): void => {
      endedBy ??= why;
      child.kill('SIGKILL');
    };
    const onAbort = (): void => void child.kill('SIGKILL');
    const timer = setTimeout(() => end('timeout'), tool.timeoutMs);
    tool.signal.addEventListener('abort', onAbort, { once: true });
    const settle = (): void => {
      clearTimeout(timer);
      tool.signal.removeEventListener('abort', onAbort);
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      settle();
      if (error.code === 'ENOENT') resolve(null);
      else reject(new EnvironmentError(`${tool.command}: ${error.message}`, { cause: error }));
    });
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > (tool.mostBytes ?? MOST_BYTES)) end('output');
      else chunks.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-LAST_WORDS);
    });
    child.once('close', (status, signal) => {
      settle();
      if (tool.signal.aborted) reject(new EnvironmentError(`${tool.command}: was stopped`));
      else resolve({ status, endedBy: endedBy ?? signal, stdout: Buffer.concat(chunks), stderr: stderr.trim() });
    });
    // It may end before it has read all: its status says so.
    child.stdin.on('error', () => undefined);
    child.stdin.end(tool.stdin);
  });
}

/** For a person, of one that did not do what it should: its last words where it said any. */
export function howItEnded({ status, endedBy, stderr }: ToolEnd, timeoutMs: number): string {
  if (endedBy === 'timeout') return `took longer than ${timeoutMs / 1_000} s`;
  if (endedBy === 'output') return 'said more than can be kept';
  return stderr.split('\n').at(-1) || (endedBy === null ? `ended with status ${status}` : `was ended by ${endedBy}`);
}

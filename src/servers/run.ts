import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface RunResult {
  ok: boolean;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  timeoutMs: number;
  env?: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
}

/** Runs a short command to its end; a command that is missing, fails or takes too long is `ok: false`. */
export function run(command: string, args: string[], options: RunOptions): Promise<RunResult> {
  const { timeoutMs, env = process.env, uid, gid } = options;
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      {
        cwd: '/',
        env,
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        maxBuffer: 16 * 1024 * 1024,
        ...(uid === undefined ? {} : { uid }),
        ...(gid === undefined ? {} : { gid }),
      },
      (error, stdout, stderr) => {
        const why = stderr.trim() === '' && error !== null ? error.message : stderr;
        resolve({ ok: error === null, stdout, stderr: why });
      },
    );
  });
}

/** The last line that says something, which is where command line tools put the reason. */
export function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1)?.trim() ?? '';
}

/** Where `name` lies on PATH, or null. */
export function onPath(name: string): string | null {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    if (folder !== '' && isExecutable(join(folder, name))) return join(folder, name);
  }
  return null;
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

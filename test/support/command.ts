/** The command as a person types it: a process of its own, with nothing of this one's environment but what is named. */
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestApi } from './api';

export const BIN = join(__dirname, '..', '..', 'bin', 'tally.js');

export interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

export interface Surroundings {
  readonly env: Readonly<Record<string, string>>;
  /** Also its HOME. */
  readonly cwd?: string;
  /** A script that is loaded before it. */
  readonly preload?: string;
}

export function runTally(words: readonly string[], { env, cwd = tmpdir(), preload }: Surroundings): Promise<Ran> {
  const args = [...(preload === undefined ? [] : ['-r', preload]), BIN, ...words];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd, timeout: 20_000, env: { PATH: process.env.PATH, TZ: 'UTC', HOME: cwd, ...env } }, (error, out, err) => {
      resolve({ status: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

/** Where to ask, and as whom. */
export function asking({ url, token }: Pick<TestApi, 'url' | 'token'>): Record<string, string> {
  return { TALLY_URL: url, TALLY_TOKEN: token };
}

/** Real git repositories to read and check out, each in a folder of its own that the test removes. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const env = {
  PATH: process.env.PATH,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@tally.invalid',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@tally.invalid',
};

export function temporaryFolder(): { readonly dir: string; remove(): void } {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'tally-test-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** Runs git in a folder and gives what it printed, without the last line break. */
export function git(dir: string, args: readonly string[], more: Readonly<Record<string, string>> = {}): string {
  return execFileSync('git', ['-c', 'protocol.file.allow=always', '-C', dir, ...args], {
    encoding: 'utf8',
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 1024 ** 3,
  }).trimEnd();
}

/** A new repository with a branch main and no commit. */
export function repository(dir: string): string {
  execFileSync('git', ['init', '--quiet', '--initial-branch=main', dir], { env });
  return dir;
}

/** Commits everything in the tree. @returns the commit. */
export function commitAll(dir: string, message: string, more: Readonly<Record<string, string>> = {}): string {
  git(dir, ['add', '--all']);
  git(dir, ['commit', '--quiet', '--allow-empty', '--message', message], more);
  return git(dir, ['rev-parse', 'HEAD']);
}

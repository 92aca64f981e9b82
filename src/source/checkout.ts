import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { EnvironmentError } from '../domain/errors';
import { type Address, config, parseAddress } from './address';
import { type GitResult, runGit } from './git';

export interface Checkout {
  readonly repository: string;
  readonly ref: string;
  /** The commit, whole. */
  readonly commit: string;
  /** Made anew; must not exist. After a failure it is gone. */
  readonly dir: string;
  /** For all of it: fetch, checkout, submodules. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A fresh tree of exactly one commit, submodules included.
 * @throws EnvironmentError when it cannot be had, with one line; the directory is then gone.
 */
export async function checkoutCommit(checkout: Checkout): Promise<void> {
  const { dir } = checkout;
  const address = parseAddress(checkout.repository);
  const deadline = Date.now() + checkout.timeoutMs;
  const git = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<GitResult> =>
    runGit(args, { cwd: dir, timeoutMs: Math.max(deadline - Date.now(), 1), env: { ...address.env, ...env }, signal: checkout.signal });
  await mkdir(dir, { recursive: false });
  try {
    await need(git(['init', '--quiet', '--initial-branch=tally', dir]), 'make a working tree');
    await need(git(['remote', 'add', 'origin', address.url]), 'name the repository');
    await fetchCommit(checkout, git);
    await need(git(['checkout', '--quiet', '--force', '--detach', checkout.commit]), `check out ${checkout.commit}`);
    if (existsSync(path.join(dir, '.gitmodules'))) await submodules(address, git);
  } catch (error) {
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
    throw error;
  }
}

type Git = (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<GitResult>;

/** By its name where the server gives single commits away, else with the ref's whole history. */
async function fetchCommit({ ref, commit }: Checkout, git: Git): Promise<void> {
  const single = await git(['fetch', '--quiet', '--no-tags', '--depth=1', '--no-recurse-submodules', 'origin', commit]);
  if (single.ok) return;
  if (
    single.isTimeout ||
    !/not our ref|unadvertised object|couldn't find remote ref|no such remote ref|dumb http transport|does not support shallow/i.test(single.reason)
  ) {
    throw new EnvironmentError(`fetch of ${commit.slice(0, 7)}: ${single.reason}`);
  }
  await need(git(['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', 'origin', ref]), `fetch of ${ref}`);
  const there = await git(['cat-file', '-e', `${commit}^{commit}`]);
  if (!there.ok) throw new EnvironmentError(`${commit.slice(0, 7)} is no longer reachable from ${ref}: the ref was rewritten`);
}

/** Git forbids submodules by file, which a repository on this machine may well have; no other may reach into this machine. */
async function submodules(address: Address, git: Git): Promise<void> {
  const env = address.isLocal ? config({ 'protocol.file.allow': 'always' }) : { GIT_ALLOW_PROTOCOL: 'https:http:ssh:git' };
  await need(git(['submodule', '--quiet', 'update', '--init', '--recursive', '--depth=1'], env), 'fetch of a submodule');
}

async function need(result: Promise<GitResult>, what: string): Promise<void> {
  const { ok, reason } = await result;
  if (!ok) throw new EnvironmentError(`${what}: ${reason}`);
}

import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { EnvironmentError, UsageError } from '../domain/errors';
import { type Address, parseAddress } from './address';
import { type GitResult, runGit } from './git';
import { isRefName } from './refs';

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
 * A repository on this machine, or a submodule of it, may belong to another user. The git that serves it is another process and
 * heeds this only in a file of settings; it runs nothing of the repository.
 */
const ANY_OWNER = '[safe]\n\tdirectory = *\n';

/**
 * A fresh tree of exactly one commit, submodules included.
 * @throws EnvironmentError when it cannot be had, with one line; the directory is then gone. UsageError for an address, a
 * ref or a commit that is none.
 */
export async function checkoutCommit(checkout: Checkout): Promise<void> {
  const { dir } = checkout;
  const address = parseAddress(checkout.repository);
  if (!isRefName(checkout.ref) || !/^[0-9a-f]{40,64}$/.test(checkout.commit)) {
    throw new UsageError(`${JSON.stringify(checkout.commit)} of ${JSON.stringify(checkout.ref)} is no commit of a ref`);
  }
  const deadline = Date.now() + checkout.timeoutMs;
  const settings = path.join(dir, '.git', 'tally-settings');
  const own = address.isLocal ? { GIT_CONFIG_GLOBAL: settings } : {};
  const git = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<GitResult> =>
    runGit(args, { cwd: dir, timeoutMs: Math.max(deadline - Date.now(), 1), env: { ...address.env, ...own, ...env }, signal: checkout.signal });
  await mkdir(dir, { recursive: false }).catch((error: Error) => {
    throw new EnvironmentError(`make a working tree: ${error.message}`, { cause: error });
  });
  try {
    await need(git(['init', '--quiet', '--initial-branch=tally', dir]), 'make a working tree');
    if (address.isLocal) await writeFile(settings, ANY_OWNER);
    await need(git(['remote', 'add', 'origin', address.url]), 'name the repository');
    await fetchCommit(checkout, git);
    await need(git(['checkout', '--quiet', '--force', '--detach', checkout.commit]), `check out ${checkout.commit}`);
    if (existsSync(path.join(dir, '.gitmodules'))) await submodules(address, git);
    await rm(settings, { force: true });
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

/** A repository on this machine may have submodules on it too; no other may reach into this machine. */
async function submodules(address: Address, git: Git): Promise<void> {
  const env: Record<string, string> = address.isLocal ? {} : { GIT_ALLOW_PROTOCOL: 'https:http:ssh:git' };
  await need(git(['submodule', '--quiet', 'update', '--init', '--recursive', '--depth=1'], env), 'fetch of a submodule');
}

async function need(result: Promise<GitResult>, what: string): Promise<void> {
  const { ok, reason } = await result;
  if (!ok) throw new EnvironmentError(`${what}: ${reason}`);
}

import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, copyFile, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { EnvironmentError } from '../domain/errors';
import { howItEnded, runTool } from './run';
import { programsFolder, toolPath } from './tools';
import type { Reading } from './types';

/** Our program that reads Go: compiled with the Go of this machine, once for each version of either. */

export interface GoProgram {
  readonly path: string;
  /** All that it and the `go` command that it calls are to know of this machine. */
  readonly env: Readonly<Record<string, string>>;
}

const SOURCES = ['go.mod', 'main.go'];
const ASK_TIMEOUT_MS = 30_000;
/** On a machine that has compiled nothing yet the standard library comes first. */
const COMPILE_TIMEOUT_MS = 300_000;

const goEnv = z.object({ GOROOT: z.string(), GOVERSION: z.string(), GOOS: z.string(), GOARCH: z.string() });

/** One compilation of a program at a time in this process; beside another process the later one wins, with the same program. */
const underway = new Map<string, Promise<void>>();

/** @throws EnvironmentError when there is no Go, or it compiles nothing. */
export async function goProgram(reading: Reading): Promise<GoProgram> {
  const { cache } = reading;
  const env = await goEnvironment(cache);
  const said = await go(['env', '-json', 'GOROOT', 'GOVERSION', 'GOOS', 'GOARCH'], env, cache, ASK_TIMEOUT_MS, reading.signal);
  const about = goEnv.parse(JSON.parse(said));
  const sources = await Promise.all(SOURCES.map((file) => readFile(join(programsFolder(), 'go', file))));
  const digest = createHash('sha256');
  for (const part of [...sources, JSON.stringify(about)]) digest.update(part).update('\0');
  const path = join(cache, `go-imports-${digest.digest('hex').slice(0, 24)}`);
  if (!(await isThere(path))) {
    const making = underway.get(path) ?? compile(path, env, cache).finally(() => underway.delete(path));
    underway.set(path, making);
    await making;
  }
  return { path, env: { ...env, GOROOT: about.GOROOT } };
}

/** All that the `go` command is to know of this machine. */
export async function goEnvironment(cache: string): Promise<Readonly<Record<string, string>>> {
  await mkdir(cache, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new EnvironmentError(`make room for compiled programs: ${error.message}`, { cause: error });
  });
  return {
    PATH: toolPath(),
    // Version managers find what they stand for there.
    HOME: process.env.HOME ?? cache,
    GOPATH: join(cache, 'go'),
    GOCACHE: await buildCache(cache),
    GOTOOLCHAIN: 'local',
    GOPROXY: 'off',
    GOFLAGS: '',
    GOENV: 'off',
    GOWORK: 'off',
    CGO_ENABLED: '0',
  };
}

/** Whoever asked for it first may stop: others wait for it too. */
async function compile(path: string, env: Readonly<Record<string, string>>, cache: string): Promise<void> {
  const { signal } = new AbortController();
  const work = join(cache, `compile-${randomBytes(6).toString('hex')}`);
  try {
    await mkdir(work);
    for (const file of SOURCES) await copyFile(join(programsFolder(), 'go', file), join(work, file));
    await go(['build', '-trimpath', '-buildvcs=false', '-ldflags=-s -w', '-o', 'imports', '.'], env, work, COMPILE_TIMEOUT_MS, signal);
    await rename(join(work, 'imports'), path);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Go's own, which may hold its standard library compiled; ours where the account has none that it may write to. */
async function buildCache(ours: string): Promise<string> {
  const own = process.env.GOCACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'go-build');
  try {
    await mkdir(own, { recursive: true });
    await access(own, constants.W_OK);
    return own;
  } catch {
    return join(ours, 'go-build');
  }
}

async function go(args: string[], env: Readonly<Record<string, string>>, cwd: string, timeoutMs: number, signal: AbortSignal): Promise<string> {
  const end = await runTool({ command: 'go', args, cwd, env, timeoutMs, signal });
  if (end === null) {
    throw new EnvironmentError('read the Go code: there is no `go` on the path of this builder: install Go 1.18 or newer from go.dev/dl');
  }
  if (end.status !== 0) {
    throw new EnvironmentError(`read the Go code: go ${args[0]}: ${howItEnded(end, timeoutMs)}`);
  }
  return end.stdout.toString();
}

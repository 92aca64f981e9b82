import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { UsageError } from '../domain/errors';
import { elsewhereOf, sweepElsewhere } from './elsewhere';
import { findPrograms, type Program, type Programs } from './find';
import { tryLock } from './lock';
import { serversDir } from './places';
import { Ports } from './ports';
import { startPostgres } from './postgres';
import { leftoversIn, stopProcess } from './processes';
import { startRabbitmq } from './rabbitmq';
import { startRegistry } from './registry';
import { startTemporal } from './temporal';
import type { ServerAddresses, ServerName, Servers, Started, StepReporter } from './types';

export interface StartOptions {
  /** holds all data of the servers; by convention `.tally/` */
  dataDir: string;
  reporter: StepReporter;
  /** begin anew: the data of the servers is deleted first */
  fresh?: boolean;
  /** RabbitMQ's consumer_timeout, milliseconds; 30 minutes where it is not given */
  consumerTimeoutMs?: number;
  /** the other addresses are then empty */
  only?: ServerName[];
}

const NOWHERE: ServerAddresses = {
  temporalAddress: '',
  temporalUiUrl: null,
  databaseUrl: '',
  amqpUrl: '',
  amqpManagementUrl: null,
  registryUrl: '',
};

const ALL: ServerName[] = ['temporal', 'rabbitmq', 'registry', 'postgres'];

/**
 * Finds or brings each server and starts it on loopback. Throws UsageError when something is missing that cannot be
 * brought, or when another process runs the servers of this data directory; then nothing that it started runs on.
 */
export async function startServers(options: StartOptions): Promise<Servers> {
  const { reporter, only = ALL, fresh = false, consumerTimeoutMs } = options;
  const dataDir = prepared(options.dataDir);
  const dir = serversDir(dataDir);
  const lock = await tryLock(dir);
  if (lock === null) throw new UsageError(inUse(dataDir));
  const running: Partial<Record<ServerName, Started<Partial<ServerAddresses>>>> = {};
  const stop = async () => {
    // At once: whoever used them has ended before, and they know nothing of each other.
    const ends = await Promise.allSettled(Object.values(running).map((server) => server.stop()));
    for (const name of only) delete running[name];
    await lock.release();
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  };
  try {
    writeFileSync(join(dir, 'used-by'), `${process.pid}\n`);
    await sweepElsewhere((place) => stopAllIn(ALL.map((name) => join(place, name))));
    if (fresh) await wipe(dataDir, only);
    const programs = await findPrograms(dataDir, only, reporter);
    const ports = new Ports(dir);
    const starts = only.map(async (name) => {
      await reporter.step(name, async (say) => {
        running[name] = await startOne(name, programs, dataDir, ports, say, consumerTimeoutMs);
      });
    });
    // All settle before an error goes on: what started meanwhile must be stopped too.
    const failed = (await Promise.allSettled(starts)).find((start) => start.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  } catch (error) {
    await stop();
    throw error;
  }
  const addresses = { ...NOWHERE };
  for (const { address } of Object.values(running)) Object.assign(addresses, address);
  return { addresses, stop };
}

/**
 * Stops whatever an earlier run left in this data directory, for who is about to delete it. Does nothing while another
 * process runs its servers.
 */
export async function stopLeftovers(dataDir: string): Promise<void> {
  const dir = serversDir(resolve(dataDir));
  const lock = await tryLock(existsSync(dir) ? realpathSync(dir) : dir);
  if (lock === null) return;
  try {
    for (const name of ALL) await stopAllIn(homesOf(dir, name));
  } finally {
    await lock.release();
  }
}

async function startOne(
  name: ServerName,
  programs: Programs,
  dataDir: string,
  ports: Ports,
  say: (detail: string) => void,
  consumerTimeoutMs: number | undefined,
): Promise<Started<Partial<ServerAddresses>>> {
  const program = programs[name];
  if (program === undefined) throw new Error(`no program for ${name}`);
  switch (name) {
    case 'temporal':
      return await startTemporal(noEngine(program), dataDir, ports, say);
    case 'postgres':
      return await startPostgres(noEngine(program), dataDir, ports, say);
    case 'rabbitmq':
      return await startRabbitmq(program, dataDir, ports, say, consumerTimeoutMs);
    case 'registry':
      return await startRegistry(program, dataDir, ports, say);
  }
}

function noEngine(program: Program): Exclude<Program, { from: 'engine' }> {
  if (program.from === 'engine') throw new Error('this server is never run in an engine');
  return program;
}

/** One spelling of the path, so that lock, container and folder names of a directory are the same at each start. */
function prepared(dataDir: string): string {
  const dir = serversDir(resolve(dataDir));
  mkdirSync(dir, { recursive: true });
  // A server that runs as another user passes through; what is secret in here has modes of its own.
  chmodSync(dir, 0o755);
  return realpathSync(resolve(dataDir));
}

function inUse(dataDir: string): string {
  const file = join(serversDir(dataDir), 'used-by');
  const by = existsSync(file) ? ` (process ${readFileSync(file, 'utf8').trim()})` : '';
  return `another Tally${by} runs the servers of ${dataDir}: stop it, or use another data directory`;
}

async function wipe(dataDir: string, names: ServerName[]): Promise<void> {
  for (const name of names) {
    const homes = homesOf(serversDir(dataDir), name);
    await stopAllIn(homes);
    for (const home of homes) rmSync(home, { recursive: true, force: true });
  }
}

/** Where a server of this data directory may have its files: here, or where its user can go. */
function homesOf(dir: string, name: ServerName): string[] {
  const elsewhere = elsewhereOf(dir);
  return [join(dir, name), ...(elsewhere === null ? [] : [join(elsewhere, name)])];
}

async function stopAllIn(homes: string[]): Promise<void> {
  for (const home of homes) {
    // epmd after the broker that is registered with it.
    const left = leftoversIn(home).sort((a, b) => Number(a.name === 'epmd') - Number(b.name === 'epmd'));
    for (const { name, pid } of left) await stopProcess(pid, name === 'postgres' ? 'SIGINT' : 'SIGTERM');
  }
}

import { chownSync, cpSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { EnvironmentError, UsageError } from '../domain/errors';
import { homeFor, type RunAs, unprivileged } from './elsewhere';
import type { Program } from './find';
import { serversDir } from './places';
import type { Ports } from './ports';
import type { ProcessSpec } from './processes';
import { lastLine, run } from './run';
import { keptSecret } from './secrets';
import { runServer } from './server';
import type { Started } from './types';

export interface PostgresAddress {
  databaseUrl: string;
}

/** The role that owns the cluster, and the database that Tally's facts live in. */
const NAME = 'tally';

/** Real PostgreSQL on loopback with a password of its own; or the database at DATABASE_URL. */
export async function startPostgres(
  program: Exclude<Program, { from: 'engine' }>,
  dataDir: string,
  ports: Ports,
  say: (detail: string) => void,
): Promise<Started<PostgresAddress>> {
  if (program.from === 'address') {
    const { host } = new URL(program.url);
    await withClient(program.url, async () => undefined).catch((error: Error) => {
      throw new UsageError(`DATABASE_URL (${host}) does not answer (${lastLine(error.message)}): start it or unset the variable`);
    });
    say(`at ${host} (DATABASE_URL), skipped`);
    return { address: { databaseUrl: program.url }, stop: async () => undefined };
  }
  const as = unprivileged();
  const password = keptSecret(serversDir(dataDir), 'postgres-password');
  const { home, isElsewhere } = await homeFor(serversDir(dataDir), 'postgres', as);
  const bin = await reachable(program.path, home, as);
  const data = join(home, 'data');
  await initialise(bin, data, password, as);
  const { address, stop, how } = await runServer({
    ports,
    portNames: ['postgres'],
    readyWithinMs: 60_000,
    spec: ([port]) => specOf(bin, home, data, port ?? 0, as),
    address: ([port]) => ({ databaseUrl: `postgresql://${NAME}:${password}@127.0.0.1:${port}/${NAME}` }),
    probe: ({ databaseUrl }) => withClient(inDatabase(databaseUrl, 'postgres'), async () => undefined),
  });
  try {
    await ensureDatabase(address.databaseUrl);
  } catch (error) {
    await stop();
    throw error;
  }
  const place = isElsewhere ? `, data in ${home}: user ${as?.user} cannot enter ${dataDir}` : '';
  say(`${how} at ${new URL(address.databaseUrl).host}${place}`);
  return { address, stop };
}

/** The folder of binaries itself, or a copy in `home` when their user cannot reach them where they are. */
async function reachable(bin: string, home: string, as: RunAs | null): Promise<string> {
  if (as === null) return bin;
  const { ok } = await run(join(bin, 'postgres'), ['--version'], { timeoutMs: 10_000, uid: as.uid, gid: as.gid });
  if (ok) return bin;
  const { stdout } = await run(join(bin, 'postgres'), ['--version'], { timeoutMs: 10_000 });
  const copy = join(home, `program-${stdout.trim().replace(/[^\w.]+/g, '-')}`);
  if (!existsSync(copy)) {
    rmSync(`${copy}.new`, { recursive: true, force: true });
    cpSync(dirname(bin), `${copy}.new`, { recursive: true, verbatimSymlinks: true });
    renameSync(`${copy}.new`, copy);
  }
  return join(copy, 'bin');
}

async function initialise(bin: string, data: string, password: string, as: RunAs | null): Promise<void> {
  if (existsSync(data)) {
    const made = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
    const { stdout } = await run(join(bin, 'postgres'), ['--version'], { timeoutMs: 10_000 });
    if (new RegExp(`\\b${made}\\.`).test(stdout)) return;
    throw new UsageError(`${data} was made by PostgreSQL ${made}, here is ${stdout.trim()}: begin anew with --fresh, or set DATABASE_URL`);
  }
  // Made under another name: an initdb that was cut short is begun again.
  const making = `${data}.new`;
  const passwordFile = `${data}.password`;
  rmSync(making, { recursive: true, force: true });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (as !== null) chownSync(passwordFile, as.uid, as.gid);
  const args = ['-D', making, '-U', NAME, '--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--encoding=UTF8', '--locale=C'];
  const { ok, stderr } = await run(join(bin, 'initdb'), args, { timeoutMs: 120_000, env: environment(), ...userOf(as) });
  rmSync(passwordFile);
  if (!ok) throw new EnvironmentError(`initdb ${making}: ${lastLine(stderr)}`);
  renameSync(making, data);
}

function specOf(bin: string, home: string, data: string, port: number, as: RunAs | null): ProcessSpec {
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    log_min_messages: 'warning',
  };
  const args = ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  // SIGINT is PostgreSQL's fast shutdown: it does not wait for clients to leave.
  return { name: 'postgres', home, command: join(bin, 'postgres'), args, env: environment(), stopSignal: 'SIGINT', ...userOf(as) };
}

async function ensureDatabase(databaseUrl: string): Promise<void> {
  await withClient(inDatabase(databaseUrl, 'postgres'), async (client) => {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [NAME]);
    if (rowCount === 0) await client.query(`create database ${NAME}`);
  });
}

async function withClient(connectionString: string, use: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString, connectionTimeoutMillis: 5_000, query_timeout: 30_000 });
  client.on('error', () => undefined); // the query that it breaks says so
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}

function inDatabase(databaseUrl: string, name: string): string {
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  return url.href;
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
}

function userOf(as: RunAs | null): { uid: number; gid: number } | Record<string, never> {
  return as === null ? {} : { uid: as.uid, gid: as.gid };
}

/**
 * A mesh on this machine: the control plane, a builder and the hosts of its nodes, beside servers that run already.
 * Everything of it lies in one data directory; secrets go to the processes by their environment and by files of mode
 * 0600, never by arguments.
 */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { EnvironmentError } from '../domain/errors';
import { ensureBuilderAccount, findManagement, keptMeshKey, keptSigningKey } from '../link';
import type { ServerAddresses } from '../servers';
import { packageRoot } from '../servers/places';
import { leftoversIn, type ProcessSpec, stopProcess } from '../servers/processes';
import { CONTROL_FLAGS, CONTROL_MEMORY } from './memory';
import { type Supervised, supervise } from './supervised';

const BUILDER_NAME = 'builder-1';

export interface MeshOptions {
  readonly dataDir: string;
  readonly addresses: ServerAddresses;
  /** Of the HTTP API, on loopback. */
  readonly apiPort: number;
  /** More for every process: shortened times, a namespace, a task queue. */
  readonly environment: Readonly<Record<string, string>>;
  /** Told of what nobody asked for, in one line. */
  readonly say: (line: string) => void;
}

export interface LocalMesh {
  readonly apiUrl: string;
  readonly places: Places;
  readonly control: Supervised;
  readonly builder: Supervised;
  /** The host of a node whose credential file the control plane has written. */
  host(node: string): Supervised;
  /** Hosts, builder, control plane, in this order; nothing of them is left. Services of nodes go on running. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Where a mesh has its files. */
export interface Places {
  /** TALLY_HOME: keys, token, the nodes' credential files. */
  readonly home: string;
  readonly processes: string;
  readonly builder: string;
  readonly demo: string;
  readonly nodes: string;
}

export function placesOf(dataDir: string): Places {
  return {
    home: join(dataDir, 'home'),
    processes: join(dataDir, 'processes'),
    builder: join(dataDir, 'builder'),
    demo: join(dataDir, 'demo'),
    nodes: join(dataDir, 'nodes'),
  };
}

/** Keys, the builder's broker account, and the three kinds of processes, none of them started yet. */
export async function localMesh(options: MeshOptions): Promise<LocalMesh> {
  const { addresses, environment, say } = options;
  const places = placesOf(options.dataDir);
  for (const place of Object.values(places)) mkdirSync(place, { recursive: true });
  chmodSync(places.home, 0o700);
  keptMeshKey(places.home);
  keptSigningKey(places.home);
  const apiUrl = `http://127.0.0.1:${options.apiPort}`;
  let isStopping = false;
  const isOver = (): boolean => isStopping;
  const inherited = { ...inheritedEnvironment(), ...environment };

  const spec = (name: string, worker: string, args: string[], env: Record<string, string>): ProcessSpec => ({
    name,
    home: places.processes,
    command: process.execPath,
    args: [...(worker === 'control' ? CONTROL_FLAGS : []), join(packageRoot(), 'dist', 'workers', `${worker}.js`), ...args],
    env: { ...inherited, ...env },
    stopSignal: 'SIGTERM',
  });

  const control = supervise(
    spec('control', 'control', [], {
      ...CONTROL_MEMORY,
      TEMPORAL_ADDRESS: addresses.temporalAddress,
      DATABASE_URL: addresses.databaseUrl,
      AMQP_URL: addresses.amqpUrl,
      ...(addresses.amqpManagementUrl === null ? {} : { AMQP_MANAGEMENT_URL: addresses.amqpManagementUrl }),
      REGISTRY_URL: addresses.registryUrl,
      TALLY_HOME: places.home,
      TALLY_LISTEN: `127.0.0.1:${options.apiPort}`,
      TALLY_PUBLIC_URL: apiUrl,
      ...(addresses.temporalUiUrl === null ? {} : { TEMPORAL_UI_URL: addresses.temporalUiUrl }),
    }),
    say,
    isOver,
  );
  const builder = supervise(
    spec('builder', 'builder', [], {
      AMQP_URL: await builderUrl(addresses),
      REGISTRY_URL: addresses.registryUrl,
      TALLY_BUILDER_NAME: BUILDER_NAME,
      TALLY_BUILDER_HOME: places.builder,
    }),
    say,
    isOver,
  );
  const hosts = new Map<string, Supervised>();

  return {
    apiUrl,
    places,
    control,
    builder,
    host(node) {
      const known = hosts.get(node);
      if (known !== undefined) return known;
      const own = join(places.nodes, node);
      mkdirSync(join(own, 'root'), { recursive: true });
      const args = ['--credentials', join(places.home, 'nodes', `${node}.json`), '--root', join(own, 'root'), '--state', join(own, 'state')];
      const host = supervise(spec(`host-${node}`, 'host', args, {}), say, isOver);
      hosts.set(node, host);
      return host;
    },
    async stop(signal) {
      isStopping = true;
      await Promise.all([...hosts.values()].map((host) => host.stop(signal)));
      await builder.stop(signal);
      await control.stop(signal);
    },
  };
}

/** Ends what an earlier run that was killed left running here, apart from services of nodes: their hosts adopt them. */
export async function stopLeftProcesses(dataDir: string): Promise<string[]> {
  const left = leftoversIn(placesOf(dataDir).processes);
  await Promise.all(left.map(({ pid }) => stopProcess(pid, 'SIGTERM')));
  return left.map(({ name }) => name);
}

/** Waits until the control plane answers; a minute is more than any start has taken. */
export async function untilAnswering(mesh: LocalMesh, withinMs = 60_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    try {
      const response = await fetch(`${mesh.apiUrl}/healthz`, { signal: AbortSignal.timeout(2_000) });
      await response.arrayBuffer();
      if (response.ok) return;
    } catch {
      // It is not there yet.
    }
    if (Date.now() > deadline)
      throw new EnvironmentError(
        `the control plane does not answer at ${mesh.apiUrl} after ${withinMs / 1_000} s: see ${join(mesh.places.processes, 'control.log')}`,
      );
    await pause(100);
  }
}

/** The mesh's tokens, as the inventory keeps them. */
export interface Tokens {
  add(name: string): Promise<string>;
  whoIs(token: string): Promise<string | null>;
}

/** Leaves the local user a token in `client.json`; one that the mesh still knows is kept. */
export async function keptToken(places: Places, apiUrl: string, tokens: Tokens): Promise<void> {
  const file = join(places.home, 'client.json');
  const before = readClient(file);
  const isKnown = before !== null && (await tokens.whoIs(before.token)) !== null;
  if (isKnown && before.url === apiUrl) return;
  const token = isKnown ? before.token : await tokens.add(userInfo().username);
  writeFileSync(file, `${JSON.stringify({ url: apiUrl, token }, null, 2)}\n`, { mode: 0o600 });
}

function readClient(file: string): { url: string; token: string } | null {
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof parsed !== 'object' || parsed === null || !('url' in parsed) || !('token' in parsed)) return null;
    return typeof parsed.url === 'string' && typeof parsed.token === 'string' ? { url: parsed.url, token: parsed.token } : null;
  } catch {
    return null;
  }
}

/** A new password at each start: nothing has to keep it, and an older builder that was forgotten is shut out. */
async function builderUrl(addresses: ServerAddresses): Promise<string> {
  const management = await findManagement(addresses.amqpUrl, addresses.amqpManagementUrl ?? undefined);
  const { user, password } = await ensureBuilderAccount(management, BUILDER_NAME);
  const url = new URL(addresses.amqpUrl);
  url.username = encodeURIComponent(user);
  url.password = encodeURIComponent(password);
  return url.href;
}

/** What the processes may see of ours: where programs and temporary files are, and what sets Tally's times. */
function inheritedEnvironment(): Record<string, string> {
  const names =
    /^(PATH|HOME|USER|LOGNAME|LANG|LC_.*|TZ|TMPDIR|TALLY_TIMES_.*|TALLY_BUILDER_.*|TALLY_QUORUM|GO.*|npm_config_.*|.*_proxy|.*_PROXY|SSL_CERT_.*|NODE_EXTRA_CA_CERTS|PIP_.*)$/;
  return Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined && names.test(entry[0])));
}

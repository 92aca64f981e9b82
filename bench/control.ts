/** The control plane as the process it is, and how much memory it takes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CONTROL_FLAGS, CONTROL_MEMORY } from '../src/processes';
import { Ports } from '../src/servers/ports';
import type { BenchServers } from './mesh';

const UP_WITHIN_MS = 60_000;

export interface ControlProcess {
  readonly url: string;
  /** Resident memory now, MiB. */
  rssMiB(): Promise<number>;
  stop(): Promise<void>;
}

export async function startControlProcess({ addresses, dir }: BenchServers, env: Readonly<Record<string, string>> = {}): Promise<ControlProcess> {
  const port = await new Ports(dir).free('api');
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(process.execPath, [...CONTROL_FLAGS, path.join(__dirname, '../workers/control.js')], {
    // Standard output is for figures alone.
    stdio: ['ignore', 2, 2],
    env: {
      ...process.env,
      ...CONTROL_MEMORY,
      TEMPORAL_ADDRESS: addresses.temporalAddress,
      DATABASE_URL: addresses.databaseUrl,
      AMQP_URL: addresses.amqpUrl,
      ...(addresses.amqpManagementUrl === null ? {} : { AMQP_MANAGEMENT_URL: addresses.amqpManagementUrl }),
      REGISTRY_URL: addresses.registryUrl,
      TALLY_HOME: path.join(dir, 'home'),
      TALLY_LISTEN: `127.0.0.1:${port}`,
      ...env,
    },
  });
  const deadline = Date.now() + UP_WITHIN_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the control plane ended with ${child.exitCode}`);
    const isUp = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2_000) }).then(
      (response) => response.ok,
      () => false,
    );
    if (isUp) break;
    if (Date.now() > deadline) throw new Error(`the control plane is not up after ${UP_WITHIN_MS / 1_000} s`);
    await pause(100);
  }
  return {
    url,
    rssMiB: async () => {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
    },
    stop: () => ended(child),
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const over = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  await over;
  clearTimeout(killer);
}

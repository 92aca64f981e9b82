import { EnvironmentError } from '../domain/errors';
import type { Ports } from './ports';
import { forget, leftover, type ProcessSpec, startProcess, stopProcess, waitUntilReady } from './processes';
import type { Started } from './types';

export interface ServerPlan<Address> {
  ports: Ports;
  portNames: string[];
  readyWithinMs: number;
  spec: (ports: number[]) => ProcessSpec;
  address: (ports: number[]) => Address;
  probe: (address: Address) => Promise<void>;
}

/** How long a server of an earlier run may take to answer before it is replaced. */
const ADOPT_WITHIN_MS = 5_000;

/**
 * Runs one server of a data directory, never two: what an earlier run left is adopted when it runs just as planned and
 * answers, else stopped first.
 */
export async function runServer<Address>(plan: ServerPlan<Address>): Promise<Started<Address> & { how: string }> {
  return (await adopted(plan)) ?? (await started(plan));
}

async function adopted<Address>(plan: ServerPlan<Address>): Promise<(Started<Address> & { how: string }) | null> {
  const ports = plan.portNames.map((name) => plan.ports.last(name) ?? 0);
  const spec = plan.spec(ports);
  const left = leftover(spec);
  if (left === null) return null;
  const address = plan.address(ports);
  if (left.isSame) {
    try {
      await waitUntilReady(spec, left.pid, ADOPT_WITHIN_MS, () => plan.probe(address));
      return { address, stop: () => stop(spec, left.pid), how: 'running already, adopted' };
    } catch {
      // It lives and does not answer: replaced below.
    }
  }
  await stop(spec, left.pid);
  return null;
}

async function started<Address>(plan: ServerPlan<Address>, triesLeft = 3): Promise<Started<Address> & { how: string }> {
  const ports: number[] = [];
  for (const name of plan.portNames) ports.push(await plan.ports.free(name));
  const spec = plan.spec(ports);
  const child = startProcess(spec);
  const pid = child.pid;
  if (pid === undefined) throw new EnvironmentError(`cannot run ${spec.command}: it is there and does not start`);
  const address = plan.address(ports);
  try {
    await waitUntilReady(spec, pid, plan.readyWithinMs, () => plan.probe(address));
  } catch (error) {
    await stop(spec, pid);
    // Someone else took a port between our look and the server's.
    if (triesLeft > 1 && (await plan.ports.areTaken(ports))) return await started(plan, triesLeft - 1);
    throw error;
  }
  return { address, stop: () => stop(spec, pid), how: 'started' };
}

async function stop(spec: ProcessSpec, pid: number): Promise<void> {
  await stopProcess(pid, spec.stopSignal);
  forget(spec);
}

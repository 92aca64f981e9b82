import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { EnvironmentError } from '../domain/errors';
import { type ContainerSpec, removeContainer, startContainer } from './engine';
import type { Ports } from './ports';
import { lastLine } from './run';
import type { Started } from './types';

export interface ContainerPlan<Address> {
  dataDir: string;
  ports: Ports;
  portNames: string[];
  readyWithinMs: number;
  container: (ports: number[]) => ContainerSpec;
  address: (ports: number[]) => Address;
  probe: (address: Address) => Promise<void>;
}

/** Runs a server in a container whose name belongs to the data directory, so that there are never two. */
export async function runContainer<Address>(plan: ContainerPlan<Address>): Promise<Started<Address> & { how: string }> {
  const spec = named(plan.dataDir, plan.container(plan.portNames.map((name) => plan.ports.last(name) ?? 0)));
  await removeContainer(spec);
  const ports: number[] = [];
  for (const name of plan.portNames) ports.push(await plan.ports.free(name));
  const container = named(plan.dataDir, plan.container(ports));
  const { ok, stderr } = await startContainer(container);
  if (!ok) throw new EnvironmentError(`${container.engine} run ${container.image}: ${lastLine(stderr)}`);
  const address = plan.address(ports);
  const deadline = Date.now() + plan.readyWithinMs;
  for (;;) {
    try {
      await plan.probe(address);
      return { address, stop: () => removeContainer(container), how: `started as container ${container.name}` };
    } catch (error) {
      if (Date.now() > deadline) {
        await removeContainer(container);
        throw new EnvironmentError(`${container.image} does not answer after ${plan.readyWithinMs / 1000} s: ${lastLine(String(error))}`);
      }
      await pause(200);
    }
  }
}

function named(dataDir: string, spec: ContainerSpec): ContainerSpec {
  const clone = createHash('sha256').update(dataDir).digest('hex').slice(0, 8);
  return { ...spec, name: `tally-${clone}-${spec.name}` };
}

/** How services run on this machine: under systemd where it is there for us, else under supervisors of our own. */
import { readFileSync } from 'node:fs';
import type { ServiceRunner } from './runner';
import { stopSupervised, supervisorRunner } from './supervisor';
import { stopUnits, systemdRunner } from './systemd';

export function serviceRunner(root: string, state: string): ServiceRunner {
  const isOurs = root === '/' && process.getuid?.() === 0 && readFileSync('/proc/1/comm', 'utf8').trim() === 'systemd';
  return isOurs ? systemdRunner(state) : supervisorRunner(state);
}

/** Ends every service of a state directory, and keeps what is known of them: the next start of its host brings them up. */
export async function stopServices(state: string): Promise<void> {
  await Promise.all([stopSupervised(state), stopUnits(state)]);
}

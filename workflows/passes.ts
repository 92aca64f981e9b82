/** The scheduled passes. Overlap is skipped by the schedule; a pass that fails is tried again by the next one. */
import { proxyActivities } from '@temporalio/workflow';
import type { Passes } from './shared';

const { readSources, sweep, fullPass } = proxyActivities<Passes>({
  startToCloseTimeout: '5 minutes',
  // While a pass stands the schedule begins no other: one whose process died must not stand in the way.
  heartbeatTimeout: '10s',
  retry: { maximumAttempts: 1 },
});

export async function watchSources(): Promise<number> {
  return readSources();
}

export async function sweepModules(): Promise<number> {
  return sweep();
}

export async function fullPassModules(): Promise<number> {
  return fullPass();
}

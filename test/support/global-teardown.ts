import { rmSync } from 'node:fs';
import { removeMade } from './servers';
import { getRun } from './test-run';

/** Takes away what the tests made (a server may be someone's that goes on), then stops what the set-up started. */
export default async function globalTeardown(): Promise<void> {
  const run = getRun();
  if (run === undefined) return;
  try {
    await removeMade();
  } finally {
    await run.servers.stop();
    rmSync(run.dataDir, { recursive: true, force: true });
  }
}

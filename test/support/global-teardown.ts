import { removeMade } from './servers';
import { endRun } from './test-run';

/** Takes away what the tests made (a server may be someone's that goes on), then stops what the set-up started. */
export default async function globalTeardown(): Promise<void> {
  await endRun(removeMade);
}

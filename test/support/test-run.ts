import { rmSync } from 'node:fs';
import type { Servers } from '../../src/servers';
import { removeAbandoned } from './dataDir';

interface TestRun {
  servers: Servers;
  dataDir: string;
  /** set by whoever is first to end the run */
  ending?: Promise<void>;
}

const KEY = Symbol.for('tally.test-run');
const holder = globalThis as typeof globalThis & { [KEY]?: TestRun };

/** Jest loads set-up and teardown as modules of their own; the process is what they share. */
export function beginRun(run: TestRun): void {
  holder[KEY] = run;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // Jest dies of a signal without its teardown, or with it: then both wait for the same end.
    process.once(signal, () => {
      void endRun().finally(() => process.exit(1));
    });
  }
}

/** Does nothing where no servers were started. `before` runs first, unless the run is ending already. */
export async function endRun(before: () => Promise<void> = async () => undefined): Promise<void> {
  const run = holder[KEY];
  if (run === undefined) return;
  run.ending ??= end(run, before);
  await run.ending;
}

async function end({ servers, dataDir }: TestRun, before: () => Promise<void>): Promise<void> {
  try {
    await before();
  } finally {
    await servers.stop();
    rmSync(dataDir, { recursive: true, force: true });
    await removeAbandoned();
  }
}

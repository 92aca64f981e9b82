import type { Servers } from '../../src/servers';

interface TestRun {
  servers: Servers;
  dataDir: string;
}

const KEY = Symbol.for('tally.test-run');
const holder = globalThis as typeof globalThis & { [KEY]?: TestRun };

/** Jest loads set-up and teardown as modules of their own; the process is what they share. */
export function setRun(run: TestRun): void {
  holder[KEY] = run;
}

export function getRun(): TestRun | undefined {
  return holder[KEY];
}

import { setTimeout as pause } from 'node:timers/promises';

/**
 * Waits until `condition` neither throws nor gives false or null, and gives what it gave (a block of `expect`s gives
 * undefined, and that is success). A deadline
 * instead of a sleep: it takes as long as it takes, and fails with the last reason.
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 10_000, everyMs = 25 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<Exclude<T, false | null>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let last: unknown;
    try {
      const result = await condition();
      if (result !== false && result !== null) return result as Exclude<T, false | null>;
      last = `the condition is still ${String(result)}`;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) {
      throw new Error(`not so after ${timeoutMs} ms: ${last instanceof Error ? last.message : String(last)}`, { cause: last });
    }
    await pause(everyMs);
  }
}

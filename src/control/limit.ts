/** At most so many at a time; the rest wait in the order they came. */
export interface Limit {
  run<T>(work: () => Promise<T>): Promise<T>;
  /** How many wait for their turn. */
  waiting(): number;
}

export function createLimit(most: number): Limit {
  const queue: Array<() => void> = [];
  let busy = 0;
  return {
    async run(work) {
      if (busy >= most) await new Promise<void>((resolve) => queue.push(resolve));
      else busy += 1;
      try {
        return await work();
      } finally {
        // The place is handed on, not given back: nobody who comes now can take it from one who waits.
        const next = queue.shift();
        if (next === undefined) busy -= 1;
        else next();
      }
    },
    waiting: () => queue.length,
  };
}

/** Each of them, so many at a time; one that fails ends none of the others. */
export async function forEachLimited<T>(items: readonly T[], most: number, work: (item: T) => Promise<void>): Promise<void> {
  const limit = createLimit(most);
  await Promise.allSettled(items.map((item) => limit.run(() => work(item))));
}

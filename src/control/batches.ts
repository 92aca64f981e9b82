import { EnvironmentError } from '../domain/errors';

export interface BatchOptions<T, R> {
  readonly most: number;
  /** The first of a batch waits at most this long. */
  readonly afterMs: number;
  /** All or nothing: when it throws, nothing of it is stored. Gives what became of each, in their order. */
  readonly store: (items: readonly T[]) => Promise<readonly R[]>;
}

export interface Batches<T, R> {
  /** Resolves once the batch with this item is stored; rejects when it is not. */
  add(item: T): Promise<R>;
}

interface Waiting<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Many small messages, one transaction. One batch is stored at a time, and what comes meanwhile is the next one; how much
 * can wait is bounded by the prefetch of the consumer that adds.
 */
export function createBatches<T, R>({ most, afterMs, store }: BatchOptions<T, R>): Batches<T, R> {
  let waiting: Array<Waiting<T, R>> = [];
  let timer: NodeJS.Timeout | null = null;
  let isStoring = false;

  function schedule(): void {
    if (isStoring || waiting.length === 0) return;
    if (waiting.length >= most) void storeNext();
    else timer ??= setTimeout(() => void storeNext(), afterMs);
  }

  async function storeNext(): Promise<void> {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    isStoring = true;
    const batch = waiting.slice(0, most);
    waiting = waiting.slice(most);
    await settle(batch);
    isStoring = false;
    schedule();
  }

  async function settle(batch: ReadonlyArray<Waiting<T, R>>): Promise<void> {
    try {
      const results = await store(batch.map(({ item }) => item));
      for (const [i, result] of results.entries()) batch[i]?.resolve(result);
    } catch (error) {
      // One that cannot be stored must not take the others with it.
      if (batch.length > 1 && !(error instanceof EnvironmentError)) {
        for (const one of batch) await settle([one]);
        return;
      }
      for (const { reject } of batch) reject(error);
    }
  }

  return {
    add: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        schedule();
      }),
  };
}

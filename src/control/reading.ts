import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import type { Consumer, Delivery, Link } from '../link';
import { createBatches } from './batches';

/** Parsed at the edge, so that it is trusted inside; or why it never will be. */
export type Read<T> = { readonly value: T } | { readonly reason: string };

export function readBody<T>(delivery: Delivery, schema: z.ZodType<T>): Read<T> {
  let json: unknown;
  try {
    json = JSON.parse(delivery.body.toString('utf8'));
  } catch {
    return { reason: 'it is not JSON' };
  }
  return readValue(json, schema);
}

export function readValue<T>(value: unknown, schema: z.ZodType<T>): Read<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { value: parsed.data };
  const [issue] = parsed.error.issues;
  return { reason: `it has not the form of its kind: ${issue?.path.join('.') || 'message'}: ${issue?.message ?? 'unknown'}` };
}

/** `later`: it goes back to its queue, since something that it needs is on its way. */
export type Refusal = { readonly kind: 'dead' | 'later'; readonly reason: string };

export interface Batching<T> {
  readonly queue: string;
  readonly most: number;
  readonly afterMs: number;
  readonly read: (delivery: Delivery) => Read<T>;
  /** Stores them in one transaction, apart from those that it refuses; the others are acknowledged. */
  readonly store: (items: readonly T[]) => Promise<ReadonlyMap<T, Refusal>>;
}

const LATER_MS = 1_000;

/** Takes messages in by batches: acknowledged once their batch is stored, dead letters where they never can be. */
export async function consumeBatches<T>(link: Link, { queue, most, afterMs, read, store }: Batching<T>): Promise<Consumer> {
  const batches = createBatches<T, Refusal | null>({
    most,
    afterMs,
    store: async (items) => {
      const refused = await store(items);
      return items.map((item) => refused.get(item) ?? null);
    },
  });
  // Twice a batch: the next one comes while this one is stored.
  return await link.consume(queue, { prefetch: most * 2 }, async (delivery) => {
    const found = read(delivery);
    const refusal = 'reason' in found ? { kind: 'dead' as const, reason: found.reason } : await batches.add(found.value);
    if (refusal === null) {
      delivery.ack();
    } else if (refusal.kind === 'dead') {
      await delivery.reject(refusal.reason);
    } else {
      await pause(LATER_MS);
      delivery.requeue();
    }
  });
}

export const NONE: ReadonlyMap<never, Refusal> = new Map<never, Refusal>();

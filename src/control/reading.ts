import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import type { Consumer, Delivery, Link } from '../link';
import { type Batches, createBatches } from './batches';

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
export interface Refusal {
  readonly kind: 'dead' | 'later';
  readonly reason: string;
}

export function dead(reason: string): Refusal {
  return { kind: 'dead', reason };
}

const LATER_MS = 1_000;

export interface Taking {
  readonly queue: string;
  readonly prefetch: number;
  /** Null once it is stored; throws when it could not be, and it comes again. */
  readonly take: (delivery: Delivery) => Promise<Refusal | null>;
}

/** Acknowledged after it is stored, a dead letter where it never can be. */
export async function consumeTaking(link: Link, { queue, prefetch, take }: Taking): Promise<Consumer> {
  return await link.consume(queue, { prefetch }, async (delivery) => {
    const refusal = await take(delivery);
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

export interface Batching<T> {
  readonly queue: string;
  readonly most: number;
  readonly afterMs: number;
  readonly read: (delivery: Delivery) => Read<T>;
  /** Stores them in one transaction. */
  readonly store: (items: readonly T[]) => Promise<void>;
}

/** Takes messages in by batches, twice a batch at a time: the next one comes while this one is stored. */
export async function consumeBatches<T>(link: Link, { queue, most, afterMs, read, store }: Batching<T>): Promise<Consumer> {
  const batches = storingBatches(most, afterMs, store);
  return await consumeTaking(link, {
    queue,
    prefetch: most * 2,
    take: async (delivery) => {
      const found = read(delivery);
      if ('reason' in found) return dead(found.reason);
      return await batches.add(found.value);
    },
  });
}

export function storingBatches<T>(most: number, afterMs: number, store: (items: readonly T[]) => Promise<void>): Batches<T, null> {
  return createBatches<T, null>({
    most,
    afterMs,
    store: async (items) => {
      await store(items);
      return items.map(() => null);
    },
  });
}

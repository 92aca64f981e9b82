/** A consumer that outlives channels and connections. A delivery is settled on the channel that brought it, or not at all. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Channel, ConsumeMessage } from 'amqplib';
import { EnvironmentError } from '../domain/errors';
import { type Keeper, within } from './connection';
import { reasonOf } from './errors';
import type { Consumer, Delivery } from './types';

const FIRST_DELAY_MS = 100;
const MOST_DELAY_MS = 10_000;
const GRACE_MS = 10_000;
/** What failed is not delivered again at once. */
const REQUEUE_AFTER_MS = 1_000;

export interface ConsumerOptions {
  readonly queue: string;
  readonly prefetch: number;
  readonly handler: (delivery: Delivery) => Promise<void>;
  /** Confirmed away, or throws. */
  readonly deadLetter: (body: Buffer, queue: string, reason: string) => Promise<void>;
  readonly onHandlerError: (error: unknown, queue: string) => void;
}

export function createConsumer(keeper: Keeper, options: ConsumerOptions): Consumer {
  const { queue } = options;
  const ended = new AbortController();
  const handling = new Set<Promise<void>>();
  let active: { channel: Channel; tag: string } | null = null;

  const running = keep();

  async function keep(): Promise<void> {
    let delayMs = FIRST_DELAY_MS;
    // Until stop(): a queue that is not there yet is waited for.
    while (!ended.signal.aborted) {
      try {
        await holdOne(() => {
          delayMs = FIRST_DELAY_MS;
        });
      } catch (error) {
        // That the broker is away is the keeper's to tell; a queue that cannot be read is ours.
        if (!(error instanceof EnvironmentError)) options.onHandlerError(error, queue);
      }
      active = null;
      await pause(delayMs, undefined, { signal: ended.signal }).catch(() => undefined);
      delayMs = Math.min(delayMs * 2, MOST_DELAY_MS);
    }
  }

  async function holdOne(established: () => void): Promise<void> {
    const model = await keeper.get(Number.POSITIVE_INFINITY);
    if (ended.signal.aborted) return;
    const channel = await model.createChannel();
    let isOpen = true;
    channel.on('error', (error) => options.onHandlerError(error, queue));
    const closed = new Promise<void>((resolve) => {
      channel.once('close', () => {
        isOpen = false;
        resolve();
      });
    });
    await channel.prefetch(options.prefetch);
    const { consumerTag } = await channel.consume(queue, (message) => {
      // Null: the broker cancelled us, the queue was deleted.
      if (message === null) void within(GRACE_MS, channel.close());
      else take(message, channel, () => isOpen);
    });
    active = { channel, tag: consumerTag };
    established();
    // Stopped while it was being established.
    if (ended.signal.aborted) await within(GRACE_MS, channel.close());
    await closed;
  }

  function take(message: ConsumeMessage, channel: Channel, isOpen: () => boolean): void {
    const delivery = toDelivery(message, channel, isOpen);
    const work = options.handler(delivery).catch(async (error: unknown) => {
      options.onHandlerError(error, queue);
      // A defect that comes back with the same message would come back for ever.
      if (!(error instanceof EnvironmentError) && delivery.redelivered) {
        await delivery.reject(`taking it in failed twice: ${reasonOf(error)}`);
        return;
      }
      await pause(REQUEUE_AFTER_MS, undefined, { signal: ended.signal }).catch(() => undefined);
      delivery.requeue();
    });
    handling.add(work);
    void work.finally(() => handling.delete(work));
  }

  function toDelivery(message: ConsumeMessage, channel: Channel, isOpen: () => boolean): Delivery {
    const { fields, properties, content } = message;
    let isSettled = false;
    const settle = (act: () => void): boolean => {
      if (isSettled || !isOpen()) return false;
      isSettled = true;
      try {
        act();
        return true;
      } catch {
        // The channel is closing: the broker will deliver it again.
        return false;
      }
    };
    return {
      body: content,
      exchange: fields.exchange,
      routingKey: fields.routingKey,
      userId: textOf(properties.userId),
      redelivered: fields.redelivered,
      replyTo: textOf(properties.replyTo),
      correlationId: textOf(properties.correlationId),
      headers: properties.headers ?? {},
      ack: () => settle(() => channel.ack(message)),
      requeue: () => settle(() => channel.nack(message, false, true)),
      async reject(reason) {
        if (isSettled || !isOpen()) return false;
        try {
          await options.deadLetter(content, queue, reason);
        } catch (error) {
          options.onHandlerError(error, queue);
          await pause(REQUEUE_AFTER_MS, undefined, { signal: ended.signal }).catch(() => undefined);
          settle(() => channel.nack(message, false, true));
          return false;
        }
        return settle(() => channel.ack(message));
      },
    };
  }

  return {
    isActive: () => active !== null,
    async stop() {
      ended.abort();
      const last = active;
      if (last !== null) await within(GRACE_MS, last.channel.cancel(last.tag));
      await within(GRACE_MS, Promise.all(handling));
      if (last === null) return;
      await within(GRACE_MS, last.channel.close());
      await running;
    },
  };
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

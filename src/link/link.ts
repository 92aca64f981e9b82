import type { Channel, ChannelModel } from 'amqplib';
import { EnvironmentError } from '../domain/errors';
import { keepConnected, within } from './connection';
import { createConsumer } from './consumer';
import { reasonOf } from './errors';
import { createPublisher } from './publisher';
import { createRequester } from './requester';
import { EXCHANGES } from './topology';
import type { Consumer, Link, LinkOptions } from './types';

const CHANNEL_TIMEOUT_MS = 10_000;
const REASON_HEADER_MOST = 2_000;

/**
 * Two connections, since a broker short of memory stops reading from those that publish: one to publish, one to
 * consume. Resolves at once, whether or not the broker answers; `ready` waits for it.
 */
export async function openLink(options: LinkOptions): Promise<Link> {
  const user = userOf(options.url);
  const declarations: Array<(channel: Channel) => Promise<void>> = [];
  const consumers = new Set<Consumer>();
  let wasUp: boolean | null = null;
  let connections = 0;

  const onChange = (isOneUp: boolean): void => {
    const isUp = out.current() !== null && into.current() !== null;
    // That one stands and the other does not yet is no news.
    if (isUp === wasUp || (isOneUp && !isUp)) return;
    wasUp = isUp;
    options.onState?.({ isUp, reason: isUp ? null : (out.reason() ?? into.reason()) });
  };
  const into = keepConnected({
    url: options.url,
    name: `${options.name} (consumes)`,
    prepare: async (model) => {
      for (const declare of declarations) await onChannel(model, declare);
      connections += 1;
    },
    onChange: (isOneUp) => onChange(isOneUp),
  });
  const out = keepConnected({ url: options.url, name: `${options.name} (publishes)`, onChange: (isOneUp) => onChange(isOneUp) });

  const publisher = createPublisher(out, user);
  const requester = createRequester(out, user);

  async function deadLetter(body: Buffer, queue: string, reason: string): Promise<void> {
    const headers = { 'x-tally-queue': queue, 'x-tally-reason': reason.slice(0, REASON_HEADER_MOST) };
    await publisher.publish(EXCHANGES.dead, queue, { body: body.toString('utf8') }, { headers });
  }

  async function withChannel<T>(use: (channel: Channel) => Promise<T>): Promise<T> {
    const deadlineMs = Date.now() + CHANNEL_TIMEOUT_MS;
    return await onChannel(await into.get(deadlineMs), use);
  }

  return {
    user,
    isUp: () => wasUp === true,
    connections: () => connections,
    async ready(timeoutMs) {
      const deadlineMs = Date.now() + timeoutMs;
      await Promise.all([out.get(deadlineMs), into.get(deadlineMs)]);
    },
    publish: publisher.publish,
    request: requester.request,
    async consume(queue, { prefetch }, handler) {
      const consumer = createConsumer(into, { queue, prefetch, handler, deadLetter, onHandlerError: options.onHandlerError ?? (() => undefined) });
      const kept: Consumer = {
        isActive: consumer.isActive,
        stop: async () => {
          consumers.delete(kept);
          await consumer.stop();
        },
      };
      consumers.add(kept);
      return kept;
    },
    async keepDeclared(declare) {
      await withChannel(declare);
      declarations.push(declare);
    },
    withChannel,
    async close() {
      await Promise.all([...consumers].map((consumer) => consumer.stop()));
      await Promise.all([out.close(), into.close()]);
    },
  };
}

/** A channel of its own: what the broker refuses closes this one and no other. */
async function onChannel<T>(model: ChannelModel, use: (channel: Channel) => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new EnvironmentError(`the broker did not answer within ${CHANNEL_TIMEOUT_MS} ms`)), CHANNEL_TIMEOUT_MS);
  });
  const used = (async () => {
    const channel = await model.createChannel();
    let isOpen = true;
    channel.on('error', () => undefined);
    channel.on('close', () => {
      isOpen = false;
    });
    try {
      return await use(channel);
    } finally {
      if (isOpen) await within(CHANNEL_TIMEOUT_MS, channel.close());
    }
  })();
  try {
    return await Promise.race([used, late]);
  } catch (error) {
    throw error instanceof EnvironmentError ? error : new EnvironmentError(`the broker refused: ${reasonOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function userOf(url: string): string {
  const user = URL.canParse(url) ? decodeURIComponent(new URL(url).username) : '';
  return user === '' ? 'guest' : user;
}

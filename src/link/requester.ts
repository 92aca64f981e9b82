/** Request and reply over RabbitMQ's direct reply-to: at most once, so that "no reply" is a normal answer. */
import { randomUUID } from 'node:crypto';
import type { Channel } from 'amqplib';
import type { Keeper } from './connection';

const REPLY_TO = 'amq.rabbitmq.reply-to';

export interface Requester {
  request(exchange: string, routingKey: string, body: object, options: { readonly timeoutMs: number }): Promise<unknown>;
}

export function createRequester(keeper: Keeper, userId: string): Requester {
  const waiting = new Map<string, (reply: unknown) => void>();
  let channel: Channel | null = null;
  let opening: Promise<Channel> | null = null;

  async function openChannel(deadlineMs: number): Promise<Channel> {
    if (channel !== null) return channel;
    opening ??= open(deadlineMs).finally(() => {
      opening = null;
    });
    return await opening;
  }

  async function open(deadlineMs: number): Promise<Channel> {
    const opened = await (await keeper.get(deadlineMs)).createChannel();
    opened.on('error', () => undefined);
    opened.on('close', () => {
      if (channel === opened) channel = null;
      for (const settle of [...waiting.values()]) settle(null);
    });
    opened.on('return', (message) => waiting.get(String(message.properties.correlationId))?.(null));
    await opened.consume(REPLY_TO, (message) => message && waiting.get(String(message.properties.correlationId))?.(parsed(message.content)), {
      noAck: true,
    });
    channel = opened;
    return opened;
  }

  return {
    async request(exchange, routingKey, body, { timeoutMs }) {
      const deadlineMs = Date.now() + timeoutMs;
      const ready = await openChannel(deadlineMs).catch(() => null);
      if (ready === null) return null;
      return await new Promise((resolve) => {
        const correlationId = randomUUID();
        const settle = (reply: unknown): void => {
          if (!waiting.delete(correlationId)) return;
          clearTimeout(timer);
          resolve(reply);
        };
        const timer = setTimeout(() => settle(null), Math.max(1, deadlineMs - Date.now()));
        waiting.set(correlationId, settle);
        try {
          const expiration = String(timeoutMs);
          ready.publish(exchange, routingKey, Buffer.from(JSON.stringify(body)), {
            correlationId,
            replyTo: REPLY_TO,
            userId,
            mandatory: true,
            expiration,
            contentType: 'application/json',
          });
        } catch {
          settle(null);
        }
      });
    },
  };
}

function parsed(content: Buffer): unknown {
  try {
    return JSON.parse(content.toString('utf8'));
  } catch {
    return null;
  }
}

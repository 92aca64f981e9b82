/** Confirmed publishing: persistent and mandatory, with a time-out of its own on every confirm. */
import type { ConfirmChannel } from 'amqplib';
import { EnvironmentError } from '../domain/errors';
import type { Keeper } from './connection';
import { reasonOf, UnroutableError } from './errors';
import type { PublishOptions } from './types';

const TIMEOUT_MS = 10_000;
/** More than this unconfirmed at a time is refused at once instead of filling memory. */
const MOST_IN_FLIGHT = 5_000;

export interface Publisher {
  publish(exchange: string, routingKey: string, body: object, options?: PublishOptions): Promise<void>;
}

export function createPublisher(keeper: Keeper, userId: string): Publisher {
  const inFlight = new Map<string, (error: EnvironmentError | null) => void>();
  let channel: ConfirmChannel | null = null;
  let opening: Promise<ConfirmChannel> | null = null;
  let lastId = 0;

  async function openChannel(deadlineMs: number): Promise<ConfirmChannel> {
    if (channel !== null) return channel;
    // Many who publish at once share one opening.
    opening ??= open(deadlineMs).finally(() => {
      opening = null;
    });
    return await opening;
  }

  async function open(deadlineMs: number): Promise<ConfirmChannel> {
    const model = await keeper.get(deadlineMs);
    const opened = await model.createConfirmChannel();
    let failure = 'the channel was closed';
    // Without this listener a channel error is an uncaught exception.
    opened.on('error', (error) => {
      failure = reasonOf(error);
    });
    // Before amqplib's own, which would tell each of them only that the channel was closed.
    opened.prependListener('close', () => {
      if (channel === opened) channel = null;
      for (const settle of [...inFlight.values()]) settle(new EnvironmentError(`not confirmed: ${failure}`));
    });
    opened.on('return', (message) => {
      const { exchange, routingKey } = message.fields;
      inFlight.get(String(message.properties.messageId))?.(new UnroutableError(`no queue takes ${exchange}/${routingKey}: the message came back`));
    });
    channel = opened;
    return opened;
  }

  return {
    async publish(exchange, routingKey, body, options = {}) {
      const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
      const deadlineMs = Date.now() + timeoutMs;
      if (inFlight.size >= MOST_IN_FLIGHT) throw new EnvironmentError(`${inFlight.size} messages wait for the broker's confirm: try again later`);
      const ready = await openChannel(deadlineMs).catch((error: unknown) => {
        throw error instanceof EnvironmentError ? error : new EnvironmentError(`could not open a channel: ${reasonOf(error)}`, { cause: error });
      });
      const blocked = keeper.blocked();
      if (blocked !== null) throw new EnvironmentError(`the broker takes nothing now: ${blocked}`);
      const content = Buffer.from(JSON.stringify(body));
      await new Promise<void>((resolve, reject) => {
        lastId += 1;
        const messageId = String(lastId);
        const settle = (error: EnvironmentError | null): void => {
          if (!inFlight.delete(messageId)) return;
          clearTimeout(timer);
          if (error === null) resolve();
          else reject(error);
        };
        const late = (): void => settle(new EnvironmentError(`${exchange}/${routingKey} was not confirmed within ${timeoutMs} ms`));
        const timer = setTimeout(late, Math.max(1, deadlineMs - Date.now()));
        inFlight.set(messageId, settle);
        try {
          ready.publish(exchange, routingKey, content, { ...properties(options), messageId, userId, mandatory: true }, (refused: unknown) => {
            settle(refused ? new EnvironmentError(`the broker refused ${exchange}/${routingKey}: its queue is full, or failed`) : null);
          });
        } catch (error) {
          settle(new EnvironmentError(`could not publish to ${exchange}/${routingKey}: ${reasonOf(error)}`, { cause: error }));
        }
      });
    },
  };
}

function properties(options: PublishOptions): object {
  return {
    persistent: options.persistent ?? true,
    contentType: 'application/json',
    ...(options.expirationMs === undefined ? {} : { expiration: String(options.expirationMs) }),
    ...(options.replyTo === undefined ? {} : { replyTo: options.replyTo }),
    ...(options.correlationId === undefined ? {} : { correlationId: options.correlationId }),
    ...(options.headers === undefined ? {} : { headers: options.headers }),
  };
}

/** Dead letters become rows with their reason, so that they are shown. */
import { EnvironmentError } from '../domain/errors';
import { recordDeadLetter } from '../inventory/letters';
import { type Consumer, type Delivery, QUEUES } from '../link';
import type { ControlDeps } from './deps';

const BODY_MOST = 16_384;

export async function consumeDead({ db, link, log }: ControlDeps): Promise<Consumer> {
  return await link.consume(QUEUES.dead, { prefetch: 50 }, async (delivery) => {
    const letter = letterOf(delivery);
    try {
      await recordDeadLetter(db, letter);
    } catch (error) {
      if (error instanceof EnvironmentError) throw error;
      // A dead letter of a dead letter would go round for ever.
      log.error({ queue: letter.queue, reason: letter.reason, err: error }, 'a dead letter could not be kept');
    }
    delivery.ack();
  });
}

interface Letter {
  readonly queue: string;
  readonly reason: string;
  readonly body: string;
}

/** Sent here with a reason by whoever could not take it in, else by the broker itself, which leaves `x-death`. */
function letterOf({ headers, body, routingKey }: Delivery): Letter {
  const reason = headers['x-tally-reason'];
  const queue = headers['x-tally-queue'];
  if (typeof reason === 'string' && typeof queue === 'string') return { queue, reason: storable(reason), body: storable(innerBody(body)) };
  const [death]: unknown[] = Array.isArray(headers['x-death']) ? headers['x-death'] : [];
  const told: { reason?: unknown; queue?: unknown } = typeof death === 'object' && death !== null ? death : {};
  return {
    queue: typeof told.queue === 'string' ? told.queue : routingKey || QUEUES.dead,
    reason: `the broker gave it up: ${typeof told.reason === 'string' ? told.reason : 'it says no reason'}`,
    body: storable(body.toString('utf8')),
  };
}

function innerBody(body: Buffer): string {
  const text = body.toString('utf8');
  try {
    const wrapped: unknown = JSON.parse(text);
    return typeof wrapped === 'object' && wrapped !== null && 'body' in wrapped && typeof wrapped.body === 'string' ? wrapped.body : text;
  } catch {
    return text;
  }
}

/** PostgreSQL's text holds no NUL. */
function storable(text: string): string {
  return text.slice(0, BODY_MOST).replaceAll('\0', '\u2400');
}

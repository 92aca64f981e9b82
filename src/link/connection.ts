/** One connection to the broker that comes back by itself, for ever, with capped backoff. */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type ChannelModel, connect } from 'amqplib';
import { EnvironmentError, UsageError } from '../domain/errors';
import { reasonOf } from './errors';

const CONNECT_TIMEOUT_MS = 10_000;
const HEARTBEAT_S = 15;
const FIRST_DELAY_MS = 100;
const MOST_DELAY_MS = 10_000;
/** A connection that ends sooner does not reset the backoff: the broker lets us in and throws us out. */
const STEADY_AFTER_MS = 5_000;
const CLOSE_TIMEOUT_MS = 3_000;

export interface Keeper {
  current(): ChannelModel | null;
  /** Why the broker takes nothing now (it is short of memory or disk); null when it does. */
  blocked(): string | null;
  /** Why there is no connection. */
  reason(): string | null;
  /** The connection as soon as there is one; rejects with an EnvironmentError at the deadline. */
  get(deadlineMs: number): Promise<ChannelModel>;
  close(): Promise<void>;
}

export interface KeeperOptions {
  readonly url: string;
  readonly name: string;
  /** Before anyone gets the connection. */
  readonly prepare?: (model: ChannelModel) => Promise<void>;
  /** Connected, or a connection or a try for one has failed. */
  readonly onChange: (isUp: boolean) => void;
}

export function keepConnected(options: KeeperOptions): Keeper {
  const url = withHeartbeat(options.url);
  const ended = new AbortController();
  const waiting = new Set<(model: ChannelModel) => void>();
  let model: ChannelModel | null = null;
  let blocked: string | null = null;
  let reason: string | null = 'not connected yet';

  const running = keep();

  async function keep(): Promise<void> {
    let delayMs = FIRST_DELAY_MS;
    // Until close(): an agent has nothing better to do than to come back.
    while (!ended.signal.aborted) {
      const since = Date.now();
      try {
        await holdOne();
      } catch (error) {
        reason = reasonOf(error);
      }
      model = null;
      blocked = null;
      if (!ended.signal.aborted) options.onChange(false);
      delayMs = Date.now() - since > STEADY_AFTER_MS ? FIRST_DELAY_MS : Math.min(delayMs * 2, MOST_DELAY_MS);
      await pause(delayMs * (0.5 + Math.random() / 2), undefined, { signal: ended.signal }).catch(() => undefined);
    }
  }

  async function holdOne(): Promise<void> {
    const opened = await connect(url, { timeout: CONNECT_TIMEOUT_MS, noDelay: true, clientProperties: { connection_name: options.name } });
    let failure: string | null = null;
    opened.on('error', (error) => {
      failure = reasonOf(error);
    });
    opened.on('blocked', (why) => {
      blocked = why;
    });
    opened.on('unblocked', () => {
      blocked = null;
    });
    const closed = new Promise<void>((resolve) => {
      opened.once('close', () => resolve());
    });
    try {
      await options.prepare?.(opened);
      if (ended.signal.aborted) return;
      model = opened;
      reason = null;
      for (const wake of [...waiting]) wake(opened);
      options.onChange(true);
      await Promise.race([closed, once(ended.signal, 'abort')]);
      reason = failure ?? 'the broker closed the connection';
    } finally {
      await within(CLOSE_TIMEOUT_MS, opened.close());
    }
  }

  return {
    current: () => model,
    blocked: () => blocked,
    reason: () => reason,
    get(deadlineMs) {
      if (model !== null) return Promise.resolve(model);
      return new Promise((resolve, reject) => {
        const done = (): void => {
          waiting.delete(wake);
          clearTimeout(timer);
          ended.signal.removeEventListener('abort', onEnd);
        };
        const wake = (opened: ChannelModel): void => {
          done();
          resolve(opened);
        };
        const fail = (why: string): void => {
          done();
          reject(new EnvironmentError(`the broker at ${hostOf(options.url)} cannot be reached: ${why}`));
        };
        const onEnd = (): void => fail('the link was closed');
        const timer = Number.isFinite(deadlineMs)
          ? setTimeout(() => fail(reason ?? 'no answer in time'), Math.max(0, deadlineMs - Date.now()))
          : undefined;
        ended.signal.addEventListener('abort', onEnd);
        waiting.add(wake);
        if (ended.signal.aborted) onEnd();
      });
    },
    async close() {
      ended.abort();
      await running;
    },
  };
}

/** Waits, but not for ever, for something whose failure no longer matters. */
export async function within(timeoutMs: number, what: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([what.catch(() => undefined), pause(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
}

function hostOf(url: string): string {
  return new URL(url).host;
}

function withHeartbeat(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^amqps?:$/.test(url.protocol))
    throw new UsageError("the broker's address is not a URL like amqp://user:password@host:5672/vhost: correct AMQP_URL");
  if (!url.searchParams.has('heartbeat')) url.searchParams.set('heartbeat', String(HEARTBEAT_S));
  return url.href;
}

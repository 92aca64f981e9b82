import type { Channel } from 'amqplib';

export interface LinkOptions {
  /** amqp://user:password@host:port/vhost; the user stands in every message as its `userId`. */
  readonly url: string;
  /** Shown in the broker's list of connections. */
  readonly name: string;
  /** Called on each change; both connections must stand for the link to be up. The reason never holds a password. */
  readonly onState?: (state: LinkState) => void;
  /** What a handler threw and did not deal with; the delivery goes back to its queue after a second. */
  readonly onHandlerError?: (error: unknown, queue: string) => void;
}

export interface LinkState {
  readonly isUp: boolean;
  readonly reason: string | null;
}

export interface PublishOptions {
  /** The broker drops the message when nobody took it within this time. */
  readonly expirationMs?: number;
  readonly replyTo?: string;
  readonly correlationId?: string;
  /** For the whole of it: waiting for a connection, and the confirm. 10 s unless told. */
  readonly timeoutMs?: number;
  /** Survives a restart of the broker; true unless told. */
  readonly persistent?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Delivery {
  readonly body: Buffer;
  readonly exchange: string;
  readonly routingKey: string;
  /** The account that published it, as the broker vouches; null where the sender left it out. */
  readonly userId: string | null;
  readonly redelivered: boolean;
  readonly replyTo: string | null;
  readonly correlationId: string | null;
  readonly headers: Readonly<Record<string, unknown>>;
  /** @returns false, and does nothing, when it was settled already or its channel is gone (the broker delivers it anew). */
  ack(): boolean;
  /** Puts it back; the same result. */
  requeue(): boolean;
  /**
   * For what can never be taken in: moves it to the dead letters with its reason, and acknowledges it once that is
   * confirmed; puts it back where that fails. Needs an account that may write to `tally.dead`: a host's may not.
   */
  reject(reason: string): Promise<boolean>;
}

export interface Consumer {
  /** True while the broker delivers to it. */
  isActive(): boolean;
  /** Takes nothing more, waits for the handlers that run (10 s at most), and gives the rest back. */
  stop(): Promise<void>;
}

export interface Link {
  /** Decoded user of the URL. */
  readonly user: string;
  isUp(): boolean;
  /** How often the broker was connected to for consuming: it grows when it may have lost what it held. */
  connections(): number;
  /** Rejects with an EnvironmentError when the link is not up within the time. */
  ready(timeoutMs: number): Promise<void>;
  /**
   * Resolves once the broker has confirmed it. Rejects with an EnvironmentError when it refused (queue full), returned
   * (UnroutableError), is short of memory or disk, or did not answer in time: it may then have taken it nevertheless.
   */
  publish(exchange: string, routingKey: string, body: object, options?: PublishOptions): Promise<void>;
  /**
   * Delivers to the handler from now on, over every reconnect, at most `prefetch` at a time. The handler settles each
   * delivery; resolves at once, also while the broker is away.
   */
  consume(queue: string, options: { readonly prefetch: number }, handler: (delivery: Delivery) => Promise<void>): Promise<Consumer>;
  /** Request and reply, at most once; null when no reply came in time for whatever reason. */
  request(exchange: string, routingKey: string, body: object, options: { readonly timeoutMs: number }): Promise<unknown>;
  /** Runs now and after every reconnect before anything is consumed: a broker that lost its data gets its topology back. */
  keepDeclared(declare: (channel: Channel) => Promise<void>): Promise<void>;
  /** Once, on a channel of its own, within 10 s. */
  withChannel<T>(use: (channel: Channel) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

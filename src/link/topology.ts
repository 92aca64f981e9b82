/**
 * What stands on the broker. Direct exchanges and durable queues only, so that RabbitMQ and LavinMQ both hold it;
 * every queue is bounded. Quorum queues where TALLY_QUORUM=1 (a cluster), classic ones otherwise.
 */
import type { Channel, Options } from 'amqplib';
import type { Link } from './types';

export const EXCHANGES = { requests: 'tally.requests', builders: 'tally.builders', dead: 'tally.dead' } as const;

export const QUEUES = {
  inspect: 'inspect',
  claims: 'claims',
  answers: 'answers',
  builderBeats: 'builder-beats',
  logs: 'logs',
  reports: 'reports',
  nodeBeats: 'node-beats',
  dead: 'dead',
} as const;

/** Routing keys: the first four on `tally.builders`, the last two on a node's own exchange. */
export const ROUTES = { claim: 'claim', answer: 'answer', builderBeat: 'beat', log: 'log', report: 'report', nodeBeat: 'beat' } as const;

const BEAT_TTL_MS = 60_000;
const CLAIM_TTL_MS = 10_000;
/** It also counts restarts of the broker. */
const DELIVERY_LIMIT = 50;

export function buildQueue(platform: string): string {
  return `build.${platform}`;
}

export function nodeExchange(node: string): string {
  return `from.${node}`;
}

export function nodeQueue(node: string): string {
  return `to.${node}`;
}

/** Now and after every reconnect, of the platforms as they are then. Declaring what is there already changes nothing. */
export async function declareTopology(link: Link, { platforms }: { readonly platforms: Iterable<string> }): Promise<void> {
  await link.keepDeclared(async (channel) => {
    await Promise.all([
      channel.assertExchange(EXCHANGES.requests, 'direct', { durable: true }),
      channel.assertExchange(EXCHANGES.builders, 'direct', { durable: true }),
      channel.assertExchange(EXCHANGES.dead, 'fanout', { durable: true }),
    ]);
    await Promise.all([
      bound(channel, EXCHANGES.dead, '', QUEUES.dead, kept({ maxLength: 10_000, overflow: 'drop-head' })),
      ...[QUEUES.inspect, ...[...platforms].map(buildQueue)].map((queue) => bound(channel, EXCHANGES.requests, queue, queue, requests())),
      bound(channel, EXCHANGES.builders, ROUTES.claim, QUEUES.claims, passing({ maxLength: 10_000, messageTtl: CLAIM_TTL_MS })),
      bound(channel, EXCHANGES.builders, ROUTES.answer, QUEUES.answers, kept({ maxLength: 100_000, overflow: 'reject-publish' })),
      bound(channel, EXCHANGES.builders, ROUTES.builderBeat, QUEUES.builderBeats, passing({ maxLength: 10_000, messageTtl: BEAT_TTL_MS })),
      bound(channel, EXCHANGES.builders, ROUTES.log, QUEUES.logs, passing({ maxLength: 50_000 })),
      durable(channel, QUEUES.reports, kept({ maxLength: 200_000, overflow: 'reject-publish' })),
      durable(channel, QUEUES.nodeBeats, passing({ maxLength: 50_000, messageTtl: BEAT_TTL_MS })),
    ]);
  });
}

/** Requests for a platform that a builder has just brought. */
export async function declarePlatform(link: Link, platform: string): Promise<void> {
  await link.withChannel((channel) => bound(channel, EXCHANGES.requests, buildQueue(platform), buildQueue(platform), requests()));
}

/** What a node writes to and reads from: an exchange and a queue of its own. Only the newest declaration waits. */
export async function declareNode(link: Link, node: string): Promise<void> {
  await link.withChannel(async (channel) => {
    await channel.assertExchange(nodeExchange(node), 'direct', { durable: true });
    await channel.bindQueue(QUEUES.reports, nodeExchange(node), ROUTES.report);
    await channel.bindQueue(QUEUES.nodeBeats, nodeExchange(node), ROUTES.nodeBeat);
    await durable(channel, nodeQueue(node), kept({ maxLength: 1, overflow: 'drop-head' }));
  });
}

/** `to.<node>` is reached by its name on the default exchange, so nothing but the queue and the exchange goes. */
export async function removeNode(link: Link, node: string): Promise<void> {
  await link.withChannel(async (channel) => {
    await channel.deleteQueue(nodeQueue(node));
    await channel.deleteExchange(nodeExchange(node));
  });
}

function requests(): Options.AssertQueue {
  const { arguments: type } = kept({});
  const limit = type === undefined ? {} : { arguments: { ...type, 'x-delivery-limit': DELIVERY_LIMIT } };
  return kept({ maxLength: 100_000, overflow: 'reject-publish', deadLetterExchange: EXCHANGES.dead, ...limit });
}

/** What must not be lost. */
function kept(options: Options.AssertQueue): Options.AssertQueue {
  return process.env.TALLY_QUORUM === '1' ? { arguments: { 'x-queue-type': 'quorum' }, ...options } : options;
}

/** What is worth nothing later: the oldest goes first. */
function passing(options: Options.AssertQueue): Options.AssertQueue {
  return { overflow: 'drop-head', ...options };
}

async function durable(channel: Channel, queue: string, options: Options.AssertQueue): Promise<void> {
  await channel.assertQueue(queue, { durable: true, ...options });
}

async function bound(channel: Channel, exchange: string, routingKey: string, queue: string, options: Options.AssertQueue): Promise<void> {
  await durable(channel, queue, options);
  await channel.bindQueue(queue, exchange, routingKey);
}

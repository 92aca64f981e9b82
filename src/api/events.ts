/**
 * The status as it changes, for boards: one reading of the store a second for all of them, and only while there are any.
 * A board gets the whole status first and then only the rows that changed. One that does not read is let go.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { StatusAnswer, StatusChange } from '../schema/api';
import type { ApiDeps } from './deps';
import { Problem } from './problems';
import { readStatus } from './status';

const CLIENTS_MAX = 100;
/** What may wait for one client that reads slowly. */
const WAITING_MAX_BYTES = 4 << 20;
const EVERY_MS = 1_000;
/** A large mesh takes longer to read: reading it is never more than a fifth of the time. */
const REST_FACTOR = 4;
const KEEP_ALIVE_MS = 15_000;

export function eventRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const clients = new Set<ServerResponse>();
  let latest: StatusAnswer | null = null;
  let isWatching = false;
  let isClosed = false;

  function send(client: ServerResponse, text: string): void {
    if (client.writableLength > WAITING_MAX_BYTES) client.destroy();
    else client.write(text);
  }

  async function look(): Promise<void> {
    try {
      const now = await readStatus(deps);
      const change = latest === null ? null : changeOf(latest, now);
      latest = now;
      if (change !== null) for (const client of clients) send(client, message('change', change));
    } catch (error) {
      deps.log.warn({ err: error }, 'the status could not be read for the boards');
      for (const client of clients) send(client, message('trouble', { error: 'the store does not answer: what is shown may be old' }));
    }
  }

  /** Ends with the last client. */
  async function watch(): Promise<void> {
    isWatching = true;
    let restMs = EVERY_MS;
    while (clients.size > 0 && !isClosed) {
      await pause(restMs, undefined, { ref: false });
      if (isClosed) break;
      const began = performance.now();
      await look();
      restMs = Math.max(EVERY_MS, (performance.now() - began) * REST_FACTOR);
    }
    latest = null;
    isWatching = false;
  }

  const keepAlive = setInterval(() => {
    for (const client of clients) send(client, ': still here\n\n');
  }, KEEP_ALIVE_MS);
  keepAlive.unref();

  app.get('/events', async (_request, reply) => {
    if (clients.size >= CLIENTS_MAX) throw new Problem(503, `${CLIENTS_MAX} boards are open at this control process already: close one`);
    const first = latest ?? (await readStatus(deps));
    const client = reply.raw;
    reply.hijack();
    // Whoever left while the status was read, or came while there was one place, is let go.
    if (client.destroyed || clients.size >= CLIENTS_MAX) {
      client.destroy();
      return;
    }
    client.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-accel-buffering': 'no',
    });
    // What was read by others meanwhile is newer; from here to the client's entry nothing else runs.
    latest ??= first;
    send(client, message('status', latest));
    clients.add(client);
    client.on('error', () => client.destroy());
    client.on('close', () => clients.delete(client));
    if (!isWatching) void watch();
  });

  app.addHook('preClose', async () => {
    isClosed = true;
    clearInterval(keepAlive);
    for (const client of clients) client.end();
  });
}

function message(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Rows that are new or differ, and the names of modules that are gone; null when nothing changed. */
export function changeOf(before: StatusAnswer, now: StatusAnswer): StatusChange | null {
  const old = new Map(before.modules.map((row) => [row.module, JSON.stringify(row)]));
  const modules = now.modules.filter((row) => old.get(row.module) !== JSON.stringify(row));
  const names = new Set(now.modules.map((row) => row.module));
  const removedModules = before.modules.map((row) => row.module).filter((name) => !names.has(name));
  const { now: at, inStep, summary, stuck, nodes, builders, alarms } = now;
  const rest = { inStep, summary, stuck, nodes: nodes.map(withoutBeat), builders: builders.map(withoutBeat), alarms };
  const restBefore = {
    inStep: before.inStep,
    summary: before.summary,
    stuck: before.stuck,
    nodes: before.nodes.map(withoutBeat),
    builders: before.builders.map(withoutBeat),
    alarms: before.alarms,
  };
  if (modules.length === 0 && removedModules.length === 0 && JSON.stringify(rest) === JSON.stringify(restBefore)) return null;
  return { now: at, inStep, summary, modules, removedModules, stuck, nodes, builders, alarms };
}

/** That a beat came is no news. */
function withoutBeat(row: { readonly lastBeatAt: string | null }): object {
  return { ...row, lastBeatAt: null };
}

/** A started API over a real store, with a Temporal that can be told to be away. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { type ApiDeps, createApi } from '../../src/api';
import { EnvironmentError, UsageError } from '../../src/domain/errors';
import { defaultTimes } from '../../src/domain/times';
import { addToken, type Db, migrate, openInventory, recordIntent } from '../../src/inventory';
import { createRegistryClient } from '../../src/registry';
import type { Ask, Verb } from '../../workflows/shared';
import { freshDatabase, registryUrl } from './servers';

export interface TestApi {
  readonly url: string;
  readonly home: string;
  readonly token: string;
  readonly db: Db;
  readonly temporal: FakeTemporal;
  /** The modules of each event that reached the source reader. */
  readonly events: string[][];
  /** Whole logs by digest, as the registry would have them. */
  readonly logs: Map<string, string>;
  readonly accounts: string[];
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Called>;
  /** As new, apart from the token: a database for each test would take longer than the tests. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export interface Called {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export class FakeTemporal {
  isAway = false;
  /** Why a validator refuses; null: it does not. */
  refusal: string | null = null;
  readonly nudged: string[] = [];
  readonly updates: Array<{ module: string; verb: Verb; ask: Ask }> = [];

  constructor(private readonly db: Db) {}

  async nudge(module: { name: string }): Promise<void> {
    if (this.isAway) throw new EnvironmentError('Temporal did not take a nudge: connection refused');
    this.nudged.push(module.name);
  }

  /** As the workflow's local activity does it: written down before it answers. */
  async update(module: { name: string }, verb: Verb, ask: Ask): Promise<string> {
    if (this.isAway) throw new EnvironmentError('Temporal did not take it: connection refused');
    if (this.refusal !== null) throw new UsageError(this.refusal);
    this.updates.push({ module: module.name, verb, ask });
    return await recordIntent(this.db, { ...ask, verb, module: module.name, node: null });
  }
}

/** One for all tests of a file, as new before each; there from the first of them on. */
export function apiOfFile(): TestApi {
  const api = {} as TestApi;
  beforeAll(async () => {
    Object.assign(api, await startApi());
  });
  beforeEach(() => api.reset());
  afterAll(() => api.close());
  return api;
}

export async function startApi(changes: Partial<ApiDeps> = {}): Promise<TestApi> {
  const databaseUrl = await freshDatabase();
  await migrate(databaseUrl);
  const db = openInventory(databaseUrl, { max: 5 });
  const home = mkdtempSync(join(tmpdir(), 'tally-api-'));
  const temporal = new FakeTemporal(db);
  const events: string[][] = [];
  const logs = new Map<string, string>();
  const accounts: string[] = [];
  const app = createApi({
    db,
    temporal,
    log: pino({ level: 'silent' }),
    meshKey: Buffer.alloc(32, 7),
    config: { publicUrl: 'http://tally.test', temporalUiUrl: 'http://temporal.test', temporalNamespace: 'default', home, times: defaultTimes },
    registry: {
      ...createRegistryClient({ url: registryUrl() }),
      async getBlob(_repository, digest) {
        const text = logs.get(digest);
        if (text === undefined) throw new EnvironmentError(`registry test: it does not hold ${digest}`);
        return gzipSync(text);
      },
    },
    access: {
      async make(node) {
        accounts.push(node);
        return {
          user: `node-${node}`,
          credentials: { amqpUrl: `amqp://node-${node}:secret@broker`, registryUrl: 'http://registry', meshPublicKey: 'key' },
        };
      },
      async remove(node) {
        accounts.splice(accounts.indexOf(node), 1);
      },
    },
    onEvent: async (modules) => void events.push([...modules]),
    probes: [],
    ...changes,
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const token = await addToken(db, 'ada');

  async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Called> {
    const response = await fetch(`${url}${path}`, {
      method,
      redirect: 'manual',
      signal: AbortSignal.timeout(20_000),
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = (response.headers.get('content-type') ?? '').includes('json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  return {
    url,
    home,
    token,
    db,
    temporal,
    events,
    logs,
    accounts,
    call,
    async reset() {
      await db.query('truncate module, node, builder, intent, dead_letter cascade');
      for (const list of [events, accounts, temporal.nudged, temporal.updates]) list.length = 0;
      logs.clear();
      temporal.isAway = false;
      temporal.refusal = null;
    },
    async close() {
      await app.close();
      await db.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

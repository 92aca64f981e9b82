/** What the loops of the control plane need in a test: a store and a broker of their own, a Temporal that only listens, a clock that can be set. */
import type { ControlDeps } from '../../src/control';
import { defaultTimes, type Times } from '../../src/domain/times';
import { type Db, openInventory } from '../../src/inventory/db';
import { migrate } from '../../src/inventory/migrate';
import { addModule } from '../../src/inventory/modules';
import { openBuild, openInspection } from '../../src/inventory/requests';
import type { Reading } from '../../src/inventory/sources';
import { recordReading } from '../../src/inventory/sources';
import { createSealing, findManagement, generateKeyPair, type Link, type Management, nodeAccount, openLink } from '../../src/link';
import { createLog } from '../../src/log';
import type { Completion } from '../../src/temporal/client';
import { type FreshVhost, freshDatabase, freshVhost } from './servers';

export interface ControlWorld {
  readonly deps: ControlDeps;
  readonly db: Db;
  readonly link: Link;
  readonly broker: FreshVhost;
  readonly management: Management;
  readonly temporal: FakeTemporal;
  /** What git says, by repository; absent where nothing is said. */
  readonly git: Map<string, () => Promise<Reading>>;
  /** Every question that git was asked. */
  readonly gitAsked: string[];
  /** Thrown by the loops' store while it is set; the test's own is not concerned. */
  storeFailure: Error | null;
  advance(ms: number): void;
  row<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row>;
  count(sql: string, values?: readonly unknown[]): Promise<number>;
  /** Called in reverse order at the end. */
  atEnd(work: () => Promise<unknown>): void;
  close(): Promise<void>;
}

export interface FakeTemporal {
  readonly nudged: string[];
  readonly completed: Array<{ module: string; request: string; completion: Completion }>;
  /** Thrown by each call while it is set. */
  failure: Error | null;
}

export async function controlWorld(times: Partial<Times> = {}): Promise<ControlWorld> {
  const [url, broker] = await Promise.all([freshDatabase(), freshVhost()]);
  await migrate(url);
  const db = openInventory(url, { max: 4 });
  const link = await openLink({ url: broker.amqpUrl, name: 'control' });
  await link.ready(10_000);
  const temporal: FakeTemporal = { nudged: [], completed: [], failure: null };
  const git = new Map<string, () => Promise<Reading>>();
  const gitAsked: string[] = [];
  const ends: Array<() => Promise<unknown>> = [() => db.close(), () => link.close()];
  let aheadMs = 0;

  const fail = (): void => {
    if (temporal.failure !== null) throw temporal.failure;
  };
  const failing: Db = {
    query: async (sql, values) => {
      if (world.storeFailure !== null) throw world.storeFailure;
      return await db.query(sql, values);
    },
    transaction: async (work) => {
      if (world.storeFailure !== null) throw world.storeFailure;
      return await db.transaction(work);
    },
    close: () => db.close(),
  };
  const deps: ControlDeps = {
    db: failing,
    link,
    temporal: {
      nudge: async ({ name }) => {
        fail();
        temporal.nudged.push(name);
      },
      completeRequest: async (module, request, completion) => {
        fail();
        temporal.completed.push({ module, request, completion });
      },
    },
    times: { ...defaultTimes, requestPass: 50, ...times },
    log: createLog('test', 'silent'),
    now: () => new Date(Date.now() + aheadMs),
    signingKey: generateKeyPair(),
    sealing: createSealing(Buffer.alloc(32, 7)),
    accountOfNode: (node) => nodeAccount(broker.amqpUrl, node),
    readRef: async (repository) => {
      gitAsked.push(repository);
      return (await git.get(repository)?.()) ?? { kind: 'absent', reason: 'nobody said anything' };
    },
  };

  const world: ControlWorld = {
    deps,
    db,
    storeFailure: null,
    link,
    broker,
    management: await findManagement(broker.amqpUrl, broker.managementUrl),
    temporal,
    git,
    gitAsked,
    advance: (ms) => {
      aheadMs += ms;
    },
    async row<Row extends object>(sql: string, values: readonly unknown[] = []) {
      const [row] = await db.query<Row>(sql, values);
      if (row === undefined) throw new Error(`no row: ${sql}`);
      return row;
    },
    async count(sql, values = []) {
      const [row] = await db.query<{ count: number }>(`select count(*)::int as count from ${sql}`, values);
      return row?.count ?? 0;
    },
    atEnd: (work) => ends.push(work),
    async close() {
      for (const end of ends.reverse()) await end();
    },
  };
  return world;
}

export const HEAD = 'a'.repeat(40);

export async function moduleAt(world: ControlWorld, module: string, commit = HEAD): Promise<void> {
  await addModule(world.db, { name: module, repository: `file:///${module}.git`, ref: 'refs/heads/main' });
  await recordReading(world.db, module, { kind: 'head', commit }, world.deps.now(), world.deps.times);
}

export async function inspectionOf(world: ControlWorld, module: string, commit = HEAD): Promise<string> {
  const id = await openInspection(world.db, module, commit);
  if (id === null) throw new Error(`no inspection of ${module} was opened`);
  return id;
}

/** Of a module whose head is already inspected. */
export async function buildOf(world: ControlWorld, module: string, commit = HEAD): Promise<string> {
  const { closure } = await world.row<{ closure: string }>('select closure_of($1) as closure', [commit]);
  const id = await openBuild(world.db, { module, commit, closure, platform: 'linux-amd64', askedBy: null });
  if (id === null) throw new Error(`no build of ${module} was opened`);
  return id;
}

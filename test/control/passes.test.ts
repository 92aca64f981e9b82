import { type Control, createPasses, startControl } from '../../src/control';
import { compare } from '../../src/domain/comparison';
import { EnvironmentError } from '../../src/domain/errors';
import { readFacts, recordComparison } from '../../src/inventory/modules';
import { addNode } from '../../src/inventory/nodes';
import { nodeExchange, nodeQueue } from '../../src/link';
import { buildFit, moduleWith } from '../inventory/graphMesh';
import { type ControlWorld, controlWorld, HEAD, moduleAt } from '../support/control';
import { eventually } from '../support/eventually';

let world: ControlWorld;
const running = new Set<string>();
let ensured = 0;
let connections = 1;

async function start(): Promise<Control> {
  const control = await startControl(world.deps, {
    ensureTemporal: async () => {
      ensured += 1;
    },
    runningModules: async () => running,
    connections: () => connections,
  });
  world.atEnd(() => control.stop());
  return control;
}

/** As the module's workflow does it when it looks. */
async function look(module: string): Promise<void> {
  const facts = await readFacts(world.db, module, world.deps.now(), world.deps.times);
  if (facts === null) throw new Error(`no module ${module}`);
  await recordComparison(world.db, compare(facts, world.deps.times), world.deps.now());
}

function nudges(module: string): number {
  return world.temporal.nudged.filter((name) => name === module).length;
}

beforeEach(async () => {
  world = await controlWorld();
  running.clear();
  ensured = 0;
  connections = 1;
});

afterEach(() => world.close());

describe('the nudge pass', () => {
  it('tells a module once of however many changes, and again after the next', async () => {
    running.add('kiosk');
    await moduleAt(world, 'kiosk');
    const control = await start();
    await eventually(() => nudges('kiosk') === 1);
    control.wakeNudges();
    await moduleAt(world, 'greeter');
    running.add('greeter');
    // Added and read are two changes, and may be two passes.
    await eventually(() => nudges('greeter') > 0);
    expect(nudges('kiosk')).toBe(1);
    await look('kiosk');
    await world.db.query('update module set head_commit = $1', ['b'.repeat(40)]);
    control.wakeNudges();
    await eventually(() => nudges('kiosk') === 2);
  });

  it('writes down that a module waits for its inputs, and tells its workflow when it may go on or when that takes long', async () => {
    const { db } = world;
    const modules = ['core', 'middle', 'top'];
    await moduleWith(db, 'core', 'a', { exports: ['x.org/core'] });
    await moduleWith(db, 'middle', 'a', { exports: ['x.org/middle'], imports: ['x.org/core'] });
    await moduleWith(db, 'top', 'a', { imports: ['x.org/core', 'x.org/middle'] });
    for (const module of modules) await buildFit(db, module);
    for (const module of modules) await look(module);
    for (const module of modules) running.add(module);
    await moduleWith(db, 'core', 'b', { exports: ['x.org/core'] });
    await buildFit(db, 'core', 'core, moved');
    await start();
    const top = async (): Promise<{ line: string; wait: number } | null> =>
      (
        await db.query<{ line: string; wait: number }>(
          `select line, extract(epoch from due_at - compared_at)::float8 as wait from module where name = 'top' and situation = 'waiting'`,
        )
      )[0] ?? null;
    const found = await eventually(top);
    expect(found.line).toContain('waiting for middle');
    expect(found.wait).toBeGreaterThan(0);
    expect(found.wait).toBeLessThanOrEqual(15);
    expect(nudges('middle')).toBe(1);
    expect(nudges('top')).toBe(0);
    await buildFit(db, 'middle', 'middle, moved');
    await eventually(() => nudges('top') === 1);
  });

  it('loses nothing while Temporal is away', async () => {
    running.add('kiosk');
    world.temporal.failure = new EnvironmentError('Temporal is away');
    await moduleAt(world, 'kiosk');
    await start();
    await eventually(() => ensured > 0);
    expect(nudges('kiosk')).toBe(0);
    world.temporal.failure = null;
    await eventually(() => nudges('kiosk') === 1);
  });
});

describe('the ensure pass', () => {
  it('starts the workflows that are missing: a wiped Temporal heals', async () => {
    for (const module of ['kiosk', 'greeter']) {
      await moduleAt(world, module);
      await look(module);
    }
    running.add('greeter');
    await start();
    await eventually(() => nudges('kiosk') === 1);
    expect(ensured).toBe(1);
    expect(nudges('greeter')).toBe(0);
  });

  it('gives every node its exchange and queue, also on a broker that lost them', async () => {
    await addNode(world.db, { name: 'alpha', site: 'home', facts: {}, brokerUser: 'node-alpha' });
    await start();
    await eventually(async () => await world.link.withChannel((channel) => channel.checkQueue(nodeQueue('alpha'))));
    expect(await world.link.withChannel((channel) => channel.checkExchange(nodeExchange('alpha')))).toBeDefined();
  });
});

describe('the scheduled passes', () => {
  const sources = { readDue: async () => 3 };

  it('sweep nudges what is owed or due, and nothing else', async () => {
    const passes = createPasses(world.deps, sources);
    for (const module of ['settled', 'owed', 'due']) {
      await moduleAt(world, module);
      await look(module);
    }
    await world.db.query('update module set due_at = null');
    expect(await passes.sweep()).toBe(0);
    await world.db.query(`update module set head_commit = $1 where name = 'owed'`, ['b'.repeat(40)]);
    await world.db.query(`update module set due_at = now() - interval '1 second' where name = 'due'`);
    world.advance(60_000);
    expect(await passes.sweep()).toBe(2);
    expect([...world.temporal.nudged].sort()).toEqual(['due', 'owed']);
    expect(await passes.readSources()).toBe(3);
  });

  it('the full pass finds what the versions missed, and only that', async () => {
    const passes = createPasses(world.deps, sources);
    for (const module of ['sound', 'missed']) {
      await moduleAt(world, module);
      await look(module);
    }
    await world.db.query('update module set due_at = null');
    expect(await passes.fullPass()).toBe(0);
    await world.db.query(`update module set situation = 'in step', next = 'nothing' where name = 'missed'`);
    expect(await passes.fullPass()).toBe(1);
    expect(world.temporal.nudged).toEqual(['missed']);
    expect(await world.row(`select head_commit from module where name = 'missed'`)).toEqual({ head_commit: HEAD });
  });

  it('the full pass takes what has waited for code to be read, and need not any more, for no defect', async () => {
    const passes = createPasses(world.deps, sources);
    await moduleAt(world, 'free');
    await look('free');
    await world.db.query(`update module set due_at = null, situation = 'waiting', next = 'wait', unread = 'gone'`);
    expect(await passes.fullPass()).toBe(0);
    expect(await world.count('module where facts_version <> compared_version')).toBe(1);
  });
});

/** What could be left alone for ever, or said to be so when it is not. */
import { compare } from '../../src/domain/comparison';
import { assign, type Db, declareBuild, recordIntent, recordNodeBeats, recordReports, removeNode, unassign } from '../../src/inventory';
import {
  A,
  B,
  beat,
  declared,
  facts,
  fitBuild,
  freshModule,
  node,
  openStore,
  placement,
  report,
  requestBuild,
  send,
  takeBuild,
  tick,
  times,
} from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const why = { who: 'ada', why: 'test' };
type Sent = NonNullable<Awaited<ReturnType<typeof send>>>;

async function sentOut(): Promise<{ name: string; on: string; build: string; sent: Sent }> {
  const placed = await declared(db);
  const sent = await send(db, placed.on);
  if (sent === null) throw new Error('not sent');
  return { ...placed, sent };
}

/** Two beats in a row that say the same. */
async function beatTwice(on: string, changes: Parameters<typeof beat>[1]): Promise<void> {
  tick(60_000);
  for (let i = 0; i < 2; i += 1) await recordNodeBeats(db, [beat(on, changes)], tick(), times);
}

describe('an operator’s cancel of a build that runs', () => {
  it('opens no other one in its place', async () => {
    const name = await freshModule(db);
    const id = await requestBuild(db, name, A);
    await takeBuild(db, id);
    await recordIntent(db, { id: `cancel-${name}`, verb: 'cancel', module: name, node: null, buildId: null, ...why });
    expect(compare(await facts(db, name), times).next.kind).toBe('nothing');
    await expect(requestBuild(db, name, A)).rejects.toThrow('no build');
  });
});

describe('applied', () => {
  it('is not what was held before something else was sent: there and back again is read back anew', async () => {
    const { name, on, build, sent } = await sentOut();
    await recordReports(db, [report(on, 1, sent)], tick());
    const next = await fitBuild(db, name, B, { resources: [{ file: { path: '/etc/new', content: 'new' } }] });
    await declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' });
    const between = await send(db, on);
    // The node has it now, and its report is still on the way.
    await recordIntent(db, { id: `back-${name}`, verb: 'rollback', module: name, node: null, buildId: build, ...why });
    const back = await send(db, on);
    expect(await placement(db, name)).toMatchObject({ build: { id: build }, isApplied: false });
    await recordReports(db, [report(on, 2, between as Sent)], tick());
    expect(await placement(db, name)).toMatchObject({ isApplied: false });
    await recordReports(db, [report(on, 3, back as Sent)], tick());
    expect(await placement(db, name)).toMatchObject({ isApplied: true });
  });

  it('stays so while other modules of the node change', async () => {
    const { name, on, sent } = await sentOut();
    await recordReports(db, [report(on, 1, sent)], tick());
    const other = await declared(db, { resources: [{ file: { path: '/etc/other', content: '{}' } }] });
    await assign(db, other.name, on, why);
    await declareBuild(db, { module: other.name, buildId: other.build, nodes: [on], by: 'auto' });
    const both = await send(db, on);
    expect(await placement(db, name)).toMatchObject({ isApplied: true });
    await recordReports(db, [report(on, 2, both as Sent)], tick());
    expect(await placement(db, name)).toMatchObject({ isApplied: true });
  });
});

describe('what a node owes and will not say by itself', () => {
  it('is asked for again: taken away and placed again before the node was told', async () => {
    const { name, on, build, sent } = await sentOut();
    await recordReports(db, [report(on, 1, sent)], tick());
    await unassign(db, name, on, why);
    await assign(db, name, on, why);
    await declareBuild(db, { module: name, buildId: build, nodes: [on], by: 'auto' });
    expect(await send(db, on)).toBeNull();
    expect(await placement(db, name)).toMatchObject({ isApplied: false });
    await beatTwice(on, { received: sent, applied: sent, reportNumber: 1 });
    const again = await send(db, on);
    await recordReports(db, [report(on, 2, again as Sent)], tick());
    expect(await placement(db, name)).toMatchObject({ isApplied: true });
  });

  it('is asked for again: its report was lost with the broker', async () => {
    const { name, on, sent } = await sentOut();
    await beatTwice(on, { received: sent, applied: sent, reportNumber: 1 });
    const again = await send(db, on);
    expect(again?.sequence).toBeGreaterThan(sent.sequence);
    await recordReports(db, [report(on, 2, again as Sent)], tick());
    expect(await placement(db, name)).toMatchObject({ isApplied: true });
  });

  it('is not asked for again while it fails, or is still being applied', async () => {
    const { name, on, sent } = await sentOut();
    await beatTwice(on, { received: sent, applied: null });
    expect(await send(db, on)).toBeNull();
    await recordReports(db, [report(on, 1, sent, { [name]: ['service/x'] })], tick());
    await beatTwice(on, { received: sent, applied: sent, reportNumber: 1 });
    expect(await send(db, on)).toBeNull();
  });
});

describe('a node that knows higher sequences than the store', () => {
  it('is sent above them, though it refused what lay below', async () => {
    const { name, on, build } = await sentOut();
    await removeNode(db, on, why, async () => undefined);
    await node(db, on, name);
    await declareBuild(db, { module: name, buildId: build, nodes: [on], by: 'auto' });
    const low = (await send(db, on)) as Sent;
    const held = { sequence: 40, digest: 'sha256:old' };
    const refused = { sequence: low.sequence, reason: 'its sequence is not above 40, the last one accepted' };
    await recordReports(db, [report(on, 9, low, {}, { declaration: held, modules: [], refused })], tick());
    await beatTwice(on, { received: held, applied: held, reportNumber: 9 });
    expect(await send(db, on)).toMatchObject({ sequence: 41 });
  });
});

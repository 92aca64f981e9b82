import { compare } from '../../src/domain/comparison';
import {
  assign,
  type Db,
  declareBuild,
  nodeDetail,
  nodeStatuses,
  nodesToSend,
  prepareSend,
  prune,
  pushNodes,
  recordIntent,
  recordNodeBeats,
  recordReports,
  recordSendFailure,
  recordSent,
  setFacts,
  unassign,
} from '../../src/inventory';
import {
  A,
  B,
  beat,
  declared,
  deriving,
  digest,
  facts,
  fitBuild,
  module,
  node,
  openStore,
  placement,
  read,
  report,
  send,
  tick,
  times,
} from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const why = { who: 'ada', why: 'test' };

describe('declaring', () => {
  it('is refused for what is not fit, not effective, or held meanwhile', async () => {
    const { name, on, build } = await declared(db);
    await read(db, name, B);
    const next = await fitBuild(db, name, B);
    await recordIntent(db, { id: `hold-${name}`, verb: 'hold', module: name, node: null, buildId: null, ...why });
    expect(await declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' })).toBe(0);
    await recordIntent(db, { id: `release-${name}`, verb: 'release', module: name, node: null, buildId: null, ...why });
    await db.query(`update build set verdict = 'failed' where id = $1`, [next]);
    expect(await declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' })).toBe(0);
    await db.query(`update build set verdict = 'fit' where id = $1`, [next]);
    await read(db, name, A);
    expect(await declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' })).toBe(0);
    expect((await placement(db, name)).build?.id).toBe(build);
  });

  it('waits for a hold that is being written, and then does nothing', async () => {
    const { name, on } = await declared(db);
    const next = await fitBuild(db, name, B);
    let declaring: Promise<number> | undefined;
    await db.transaction(async (tx) => {
      await recordIntent(tx, { id: `hold-${name}`, verb: 'hold', module: name, node: null, buildId: null, ...why });
      declaring = declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' });
      // It is on its way and waits for the module's lock.
      await db.query('select 1');
    });
    expect(await declaring).toBe(0);
  });

  it('is rolled back to an earlier fit build and held there, until it is released', async () => {
    const { name, build } = await declared(db);
    const next = await fitBuild(db, name, B);
    const before = await placement(db, name);
    expect(before.build?.id).toBe(build);
    const says = await recordIntent(db, { id: `back-${name}`, verb: 'rollback', module: name, node: null, buildId: next, ...why });
    expect(says).toBe(`bbbbbbb is declared on 1 more of 1 nodes and held: tally release ${name} lifts that`);
    await recordIntent(db, { id: `back2-${name}`, verb: 'rollback', module: name, node: null, buildId: build, ...why });
    expect(await facts(db, name)).toMatchObject({ hold: { by: 'ada', why: 'test', buildId: build }, placements: [{ build: { id: build } }] });
    const bad = { verb: 'rollback' as const, module: name, node: null, ...why };
    await expect(recordIntent(db, { ...bad, id: 'x1', buildId: 'none' })).rejects.toMatchObject({ kind: 'usage' });
    await expect(recordIntent(db, { ...bad, id: 'x2', verb: 'declare', buildId: null })).rejects.toMatchObject({
      message: `${name} is held: tally release ${name} first`,
    });
  });

  it('is approved for one build, where a module asks', async () => {
    const { name } = await declared(db, { declare: 'ask' });
    const next = await fitBuild(db, name, B, { declare: 'ask' });
    expect(compare(await facts(db, name), times).next.kind).toBe('ask');
    expect(await recordIntent(db, { id: `yes-${name}`, verb: 'declare', module: name, node: null, buildId: null, ...why })).toBe(
      'bbbbbbb is to be declared on 1 node',
    );
    expect(compare(await facts(db, name), times).next).toMatchObject({ kind: 'declare', buildId: next });
    await expect(recordIntent(db, { id: `no-${name}`, verb: 'declare', module: name, node: null, buildId: 'other', ...why })).rejects.toMatchObject({
      kind: 'usage',
    });
  });
});

describe('sending', () => {
  it('counts as sent only what the broker confirmed, with a sequence that is never used twice', async () => {
    const { name, on } = await declared(db);
    expect(await nodesToSend(db, 100, tick())).toContain(on);
    const first = await prepareSend(db, on, deriving, tick());
    if (first.kind !== 'send') throw new Error(first.kind);
    expect(first.declaration).toMatchObject({
      version: 1,
      mesh: 'home',
      node: on,
      sequence: 1,
      resources: [{ module: name, spec: { path: `/etc/${name}/${on}.json` } }],
    });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ sending: 'never told' }]);
    expect(await placement(db, name)).toMatchObject({ waitingOn: 'send' });
    // While it is under way nobody else sends to this node.
    expect(await prepareSend(db, on, deriving, tick())).toEqual({ kind: 'busy' });
    await recordSendFailure(db, on, 'returned by the broker', tick(), times);
    expect(await placement(db, name)).toMatchObject({ waitingOn: 'send', detail: 'returned by the broker' });
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    const later = tick(6_000);
    expect(await nodesToSend(db, 100, later)).toContain(on);
    const second = await prepareSend(db, on, deriving, later);
    if (second.kind !== 'send') throw new Error(second.kind);
    expect(second.declaration).toEqual({ ...first.declaration, sequence: 2 });
    await recordSent(db, on, 2, second.declaration.digest, tick());
    expect(await placement(db, name)).toMatchObject({ waitingOn: 'node', detail: null });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ sending: 'up to date', sendTrouble: null }]);
    // The confirm of the first comes late.
    await recordSent(db, on, 1, first.declaration.digest, tick());
    expect((await nodeDetail(db, on))?.sent).toMatchObject({ sequence: 2 });
  });

  it('is news only to the modules that it is about', async () => {
    const { name, on } = await declared(db);
    await send(db, on);
    const other = `${name}-too`;
    await module(db, other);
    const build = await fitBuild(db, other, A, { resources: [{ file: { path: '/etc/too', content: '' } }] });
    await assign(db, other, on, why);
    await declareBuild(db, { module: other, buildId: build, nodes: [on], by: 'auto' });
    const [before, beforeOther] = [await facts(db, name), await facts(db, other)];
    const sent = await send(db, on);
    expect((await facts(db, name)).version).toBe(before.version);
    const told = await facts(db, other);
    expect(told.version).toBeGreaterThan(beforeOther.version);
    expect(told.placements).toMatchObject([{ waitingOn: 'node' }]);
    const received = { sequence: sent?.sequence ?? 0, digest: sent?.digest ?? '' };
    await recordNodeBeats(db, [beat(on, { received })], tick(), times);
    expect((await facts(db, name)).version).toBeGreaterThan(before.version);
    expect(await placement(db, other)).toMatchObject({ waitingOn: 'apply' });
  });

  it('takes a sequence above what the node has seen, also when the store knows less', async () => {
    const { on } = await declared(db);
    await recordNodeBeats(db, [beat(on, { received: { sequence: 41, digest: digest('lost') }, applied: null })], tick(), times);
    expect((await send(db, on))?.sequence).toBe(42);
  });

  it('is one send for many changes, and none for a change that changes nothing', async () => {
    const { name, on, build } = await declared(db);
    await send(db, on);
    await setFacts(db, on, { unrelated: '1' });
    expect(await nodesToSend(db, 100, tick())).toContain(on);
    expect(await prepareSend(db, on, deriving, tick())).toEqual({ kind: 'unchanged' });
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    await unassign(db, name, on, why);
    await assign(db, name, on, why);
    await declareBuild(db, { module: name, buildId: build, nodes: [on], by: 'auto' });
    expect(await prepareSend(db, on, deriving, tick())).toEqual({ kind: 'unchanged' });
  });

  it('tells a node that holds nothing any more, and never a node that was never told', async () => {
    const { name, on } = await declared(db);
    await node(db, `bare-${on}`);
    expect(await prepareSend(db, `bare-${on}`, deriving, tick())).toEqual({ kind: 'unchanged' });
    expect(await nodeStatuses(db, tick(), times, [`bare-${on}`])).toMatchObject([{ sending: 'nothing to tell', presence: 'never seen' }]);
    await send(db, on);
    await unassign(db, name, on, why);
    expect(await prepareSend(db, on, deriving, tick())).toMatchObject({ kind: 'send', declaration: { resources: [], sequence: 2 } });
  });

  it('keeps apart what cannot be worked out, and sends when it can', async () => {
    const { name, on } = await declared(db, { resources: [{ file: { path: '/etc/x', content: '${facts.port}' } }] });
    const reason = `${name}: file /etc/x needs the fact port, which ${on} does not have: tally node set ${on} port=VALUE`;
    expect(await prepareSend(db, on, deriving, tick())).toEqual({ kind: 'notWorkedOut', reason });
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    expect(await placement(db, name)).toMatchObject({ isApplied: false, waitingOn: 'workout', detail: reason });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ sending: 'not worked out', notWorkedOut: { reason } }]);
    await setFacts(db, on, { port: '8081' });
    expect(await send(db, on)).toMatchObject({ sequence: 1 });
    await setFacts(db, on, { port: '' });
    expect(await prepareSend(db, on, deriving, tick())).toMatchObject({ kind: 'notWorkedOut' });
    expect(await placement(db, name)).toMatchObject({ isApplied: false, waitingOn: 'workout' });
  });

  it('does not send what the host cannot read', async () => {
    const { on, name } = await declared(db);
    await recordNodeBeats(db, [beat(on, { reads: { versions: [1], shapes: ['directory'] } })], tick(), times);
    expect(await prepareSend(db, on, deriving, tick())).toMatchObject({
      kind: 'notWorkedOut',
      reason: `${name}: file/etc/${name}/${on}.json is a file, which ${on}'s host cannot read: update the host`,
    });
  });

  it('sends again to a node that lags two beats, and not once it has refused just that', async () => {
    const { on } = await declared(db);
    await recordNodeBeats(db, [beat(on)], tick(), times);
    const sent = await send(db, on);
    await recordNodeBeats(db, [beat(on)], tick(), times);
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    await recordNodeBeats(db, [beat(on)], tick(), times);
    expect(await nodesToSend(db, 100, tick())).toContain(on);
    const again = await send(db, on);
    expect(again).toEqual({ ...sent, sequence: 2 });
    await recordReports(
      db,
      [
        report(
          on,
          1,
          { sequence: 0, digest: digest('none'), modules: {} },
          {},
          { declaration: null, refused: { sequence: 2, reason: 'unknown field' } },
        ),
      ],
      tick(),
    );
    for (let i = 0; i < 4; i += 1) await recordNodeBeats(db, [beat(on)], tick(), times);
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    expect(await pushNodes(db, { nodes: [on], again: true, ...why })).toEqual([on]);
    expect(await nodesToSend(db, 100, tick())).toContain(on);
  });

  it('moves a placement to a rebuild with the same artifacts without a send, and it stays applied', async () => {
    const { name, on } = await declared(db);
    const sent = await send(db, on);
    if (sent === null) throw new Error('not sent');
    await recordReports(db, [report(on, 1, sent)], tick());
    expect(await placement(db, name)).toMatchObject({ isApplied: true, outstandingSince: null });
    await read(db, name, B);
    const next = await fitBuild(db, name, B);
    await declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' });
    expect(await prepareSend(db, on, deriving, tick())).toEqual({ kind: 'unchanged' });
    expect(await placement(db, name)).toMatchObject({ isApplied: true, outstandingSince: null, applied: { buildId: next, commit: B } });
  });

  it('has nothing to apply of a module without resources', async () => {
    const { name, on } = await declared(db, { resources: [] });
    expect(await prepareSend(db, on, deriving, tick())).toEqual({ kind: 'unchanged' });
    expect(await placement(db, name)).toMatchObject({ isApplied: true });
  });

  it('keeps the declarations of a node bounded', async () => {
    const { on } = await declared(db, { resources: [{ file: { path: '/etc/x', content: '${facts.n}' } }] });
    for (let n = 0; n < 14; n += 1) {
      await setFacts(db, on, { n: String(n) });
      await send(db, on);
    }
    const [row] = await db.query<{ count: number; least: number }>(
      'select count(*) as count, min(sequence) as least from declaration where node = $1',
      [on],
    );
    expect(row).toEqual({ count: 11, least: 4 });
    await prune(db);
    const [after] = await db.query<{ count: number }>('select count(*) as count from declaration where node = $1', [on]);
    expect(after?.count).toBe(10);
  });
});

import fc from 'fast-check';
import type { NodeBeat, NodeReport } from '../../src/schema/messages';
import {
  addNode, assign, declareBuild, type Db, listNodes, meshHealth, nodeDetail, nodeKeys, nodesToSend, nodeStatuses, planRows, prepareSend, prune, pushNodes, recordComparison, recordDeadLetter, recordIntent, recordNodeBeats,
  recordReports, recordSendFailure, recordSent, removeNode, setFacts, stuckStatuses, unassign,
} from '../../src/inventory';
import { compare } from '../../src/domain/comparison';
import { A, B, digest, facts, fitBuild, module, node, openStore, read, report, send, tick, times } from './store';

let db: Db;
let count = 0;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const why = { who: 'ada', why: 'test' };

/** A module declared on one node of its own. */
async function declared(manifest: object = {}): Promise<{ name: string; on: string; build: string }> {
  count += 1;
  const [name, on] = [`m${count}`, `n${count}`];
  await module(db, name);
  const build = await fitBuild(db, name, A, manifest);
  await node(db, on, name);
  expect(await declareBuild(db, { module: name, buildId: build, nodes: [on], by: 'auto' })).toBe(1);
  return { name, on, build };
}

function beat(name: string, changes: Partial<NodeBeat> = {}): NodeBeat {
  return {
    v: 1, type: 'beat', node: name, epoch: 'e1', at: '2026-11-29T12:00:00Z', publicKey: `key of ${name}`, hostVersion: '1', reads: { versions: [1], shapes: ['file', 'directory', 'archive', 'service', 'action'] },
    received: null, applied: null, reportNumber: 0, ...changes,
  };
}

async function placement(name: string) {
  const [found] = (await facts(db, name)).placements;
  if (found === undefined) throw new Error(`${name} is placed nowhere`);
  return found;
}

/** How often the row of a placement was written. */
async function written(name: string): Promise<string> {
  const [row] = await db.query<{ xmin: string }>('select xmin::text from placement where module = $1', [name]);
  return row?.xmin ?? '';
}

describe('declaring', () => {
  it('is refused for what is not fit, not effective, or held meanwhile', async () => {
    const { name, on, build } = await declared();
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
    expect((await placement(name)).build?.id).toBe(build);
  });

  it('waits for a hold that is being written, and then does nothing', async () => {
    const { name, on } = await declared();
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
    const { name, build } = await declared();
    const next = await fitBuild(db, name, B);
    const before = await placement(name);
    expect(before.build?.id).toBe(build);
    const says = await recordIntent(db, { id: `back-${name}`, verb: 'rollback', module: name, node: null, buildId: next, ...why });
    expect(says).toBe(`bbbbbbb is declared on 1 more of 1 nodes and held: tally release ${name} lifts that`);
    await recordIntent(db, { id: `back2-${name}`, verb: 'rollback', module: name, node: null, buildId: build, ...why });
    expect(await facts(db, name)).toMatchObject({ hold: { by: 'ada', why: 'test', buildId: build }, placements: [{ build: { id: build } }] });
    const bad = { verb: 'rollback' as const, module: name, node: null, ...why };
    await expect(recordIntent(db, { ...bad, id: 'x1', buildId: 'none' })).rejects.toMatchObject({ kind: 'usage' });
    await expect(recordIntent(db, { ...bad, id: 'x2', verb: 'declare', buildId: null })).rejects.toMatchObject({ message: `${name} is held: tally release ${name} first` });
  });

  it('is approved for one build, where a module asks', async () => {
    const { name } = await declared({ declare: 'ask' });
    const next = await fitBuild(db, name, B, { declare: 'ask' });
    expect(compare(await facts(db, name), times).next.kind).toBe('ask');
    expect(await recordIntent(db, { id: `yes-${name}`, verb: 'declare', module: name, node: null, buildId: null, ...why })).toBe('bbbbbbb is to be declared on 1 node');
    expect(compare(await facts(db, name), times).next).toMatchObject({ kind: 'declare', buildId: next });
    await expect(recordIntent(db, { id: `no-${name}`, verb: 'declare', module: name, node: null, buildId: 'other', ...why })).rejects.toMatchObject({ kind: 'usage' });
  });
});

describe('sending', () => {
  it('counts as sent only what the broker confirmed, with a sequence that is never used twice', async () => {
    const { name, on } = await declared();
    expect(await nodesToSend(db, 100, tick())).toContain(on);
    const first = await prepareSend(db, on, digest, tick());
    if (first.kind !== 'send') throw new Error(first.kind);
    expect(first.declaration).toMatchObject({ version: 1, mesh: 'home', node: on, sequence: 1, resources: [{ module: name, spec: { path: `/etc/${on}.json` } }] });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ sending: 'never told' }]);
    expect(await placement(name)).toMatchObject({ waitingOn: 'send' });
    // While it is under way nobody else sends to this node.
    expect(await prepareSend(db, on, digest, tick())).toEqual({ kind: 'busy' });
    await recordSendFailure(db, on, 'returned by the broker', tick(), times);
    expect(await placement(name)).toMatchObject({ waitingOn: 'send', detail: 'returned by the broker' });
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    const later = tick(6_000);
    expect(await nodesToSend(db, 100, later)).toContain(on);
    const second = await prepareSend(db, on, digest, later);
    if (second.kind !== 'send') throw new Error(second.kind);
    expect(second.declaration).toEqual({ ...first.declaration, sequence: 2 });
    await recordSent(db, on, 2, second.declaration.digest, tick());
    expect(await placement(name)).toMatchObject({ waitingOn: 'node', detail: null });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ sending: 'up to date', sendTrouble: null }]);
    // The confirm of the first comes late.
    await recordSent(db, on, 1, first.declaration.digest, tick());
    expect((await nodeDetail(db, on))?.sent).toMatchObject({ sequence: 2 });
  });

  it('takes a sequence above what the node has seen, also when the store knows less', async () => {
    const { on } = await declared();
    await recordNodeBeats(db, [beat(on, { received: { sequence: 41, digest: digest('lost') }, applied: null })], tick(), times);
    expect((await send(db, on))?.sequence).toBe(42);
  });

  it('is one send for many changes, and none for a change that changes nothing', async () => {
    const { name, on, build } = await declared();
    await send(db, on);
    await setFacts(db, on, { unrelated: '1' });
    expect(await nodesToSend(db, 100, tick())).toContain(on);
    expect(await prepareSend(db, on, digest, tick())).toEqual({ kind: 'unchanged' });
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    await unassign(db, name, on, why);
    await assign(db, name, on, why);
    await declareBuild(db, { module: name, buildId: build, nodes: [on], by: 'auto' });
    expect(await prepareSend(db, on, digest, tick())).toEqual({ kind: 'unchanged' });
  });

  it('tells a node that holds nothing any more, and never a node that was never told', async () => {
    const { name, on } = await declared();
    await node(db, `bare-${on}`);
    expect(await prepareSend(db, `bare-${on}`, digest, tick())).toEqual({ kind: 'unchanged' });
    expect(await nodeStatuses(db, tick(), times, [`bare-${on}`])).toMatchObject([{ sending: 'nothing to tell', presence: 'never seen' }]);
    await send(db, on);
    await unassign(db, name, on, why);
    expect(await prepareSend(db, on, digest, tick())).toMatchObject({ kind: 'send', declaration: { resources: [], sequence: 2 } });
  });

  it('keeps apart what cannot be worked out, and sends when it can', async () => {
    const { name, on } = await declared({ resources: [{ file: { path: '/etc/x', content: '${facts.port}' } }] });
    const reason = `${name}: file /etc/x needs the fact port, which ${on} does not have: set it with --set port=VALUE`;
    expect(await prepareSend(db, on, digest, tick())).toEqual({ kind: 'notWorkedOut', reason });
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    expect(await placement(name)).toMatchObject({ isApplied: false, waitingOn: 'workout', detail: reason });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ sending: 'not worked out', notWorkedOut: { reason } }]);
    await setFacts(db, on, { port: '8081' });
    expect(await send(db, on)).toMatchObject({ sequence: 1 });
    await setFacts(db, on, { port: '' });
    expect(await prepareSend(db, on, digest, tick())).toMatchObject({ kind: 'notWorkedOut' });
    expect(await placement(name)).toMatchObject({ isApplied: false, waitingOn: 'workout' });
  });

  it('does not send what the host cannot read', async () => {
    const { on, name } = await declared();
    await recordNodeBeats(db, [beat(on, { reads: { versions: [1], shapes: ['directory'] } })], tick(), times);
    expect(await prepareSend(db, on, digest, tick())).toMatchObject({ kind: 'notWorkedOut', reason: `${name}: file/etc/${on}.json is a file, which ${on}'s host cannot read: update the host` });
  });

  it('sends again to a node that lags two beats, and not once it has refused just that', async () => {
    const { on } = await declared();
    await recordNodeBeats(db, [beat(on)], tick(), times);
    const sent = await send(db, on);
    await recordNodeBeats(db, [beat(on)], tick(), times);
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    await recordNodeBeats(db, [beat(on)], tick(), times);
    expect(await nodesToSend(db, 100, tick())).toContain(on);
    const again = await send(db, on);
    expect(again).toEqual({ ...sent, sequence: 2 });
    await recordReports(db, [report(on, 1, { sequence: 0, digest: digest('none'), modules: {} }, {}, { declaration: null, refused: { sequence: 2, reason: 'unknown field' } })], tick());
    for (let i = 0; i < 4; i += 1) await recordNodeBeats(db, [beat(on)], tick(), times);
    expect(await nodesToSend(db, 100, tick())).not.toContain(on);
    expect(await pushNodes(db, { nodes: [on], again: true, ...why })).toEqual([on]);
    expect(await nodesToSend(db, 100, tick())).toContain(on);
  });

  it('moves a placement to a rebuild with the same artifacts without a send, and it stays applied', async () => {
    const { name, on } = await declared();
    const sent = await send(db, on);
    if (sent === null) throw new Error('not sent');
    await recordReports(db, [report(on, 1, sent)], tick());
    expect(await placement(name)).toMatchObject({ isApplied: true, outstandingSince: null });
    await read(db, name, B);
    const next = await fitBuild(db, name, B);
    await declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' });
    expect(await prepareSend(db, on, digest, tick())).toEqual({ kind: 'unchanged' });
    expect(await placement(name)).toMatchObject({ isApplied: true, outstandingSince: null, applied: { buildId: next, commit: B } });
  });

  it('has nothing to apply of a module without resources', async () => {
    const { name, on } = await declared({ resources: [] });
    expect(await prepareSend(db, on, digest, tick())).toEqual({ kind: 'unchanged' });
    expect(await placement(name)).toMatchObject({ isApplied: true });
  });

  it('keeps the declarations of a node bounded', async () => {
    const { on } = await declared({ resources: [{ file: { path: '/etc/x', content: '${facts.n}' } }] });
    for (let n = 0; n < 14; n += 1) {
      await setFacts(db, on, { n: String(n) });
      await send(db, on);
    }
    const [row] = await db.query<{ count: number; least: number }>('select count(*) as count, min(sequence) as least from declaration where node = $1', [on]);
    expect(row).toEqual({ count: 11, least: 4 });
    await prune(db);
    const [after] = await db.query<{ count: number }>('select count(*) as count from declaration where node = $1', [on]);
    expect(after?.count).toBe(10);
  });
});

describe('reports', () => {
  async function sentOut(): Promise<{ name: string; on: string; sent: NonNullable<Awaited<ReturnType<typeof send>>> }> {
    const { name, on } = await declared();
    const sent = await send(db, on);
    if (sent === null) throw new Error('not sent');
    return { name, on, sent };
  }

  it('make a placement applied, and one that changes nothing touches no placement', async () => {
    const { name, on, sent } = await sentOut();
    expect(await recordReports(db, [report(on, 1, sent)], tick())).toEqual([name]);
    expect(await placement(name)).toMatchObject({ isApplied: true, applied: { commit: A }, waitingOn: null });
    const before = await written(name);
    expect(await recordReports(db, [report(on, 2, sent)], tick())).toEqual([]);
    expect(await recordReports(db, [report(on, 2, sent)], tick())).toEqual([]);
    expect(await written(name)).toBe(before);
    expect((await nodeDetail(db, on))?.reports.map((one) => one.number)).toEqual([2, 1]);
  });

  it('that fail three times on the same resources are stuck, with since and count; a clean one ends it', async () => {
    const { name, on, sent } = await sentOut();
    const since = tick();
    await recordReports(db, [report(on, 1, sent, { [name]: ['service/x'] })], since);
    for (const number of [2, 3]) await recordReports(db, [report(on, number, sent, { [name]: ['service/x'] })], tick());
    expect(await placement(name)).toMatchObject({
      isApplied: false, waitingOn: 'apply', detail: 'exit status 203, report 3', failing: { resources: ['service/x'], count: 3, since: since.toISOString(), message: 'exit status 203, report 3' },
    });
    expect((await stuckStatuses(db, tick(), times)).filter((one) => one.module === name)).toMatchObject([{ node: on, count: 3 }]);
    expect(compare(await facts(db, name), times)).toMatchObject({ situation: 'stuck', stuckOn: [on] });
    await recordReports(db, [report(on, 4, sent)], tick());
    expect(await placement(name)).toMatchObject({ isApplied: true, failing: null, outstandingSince: null });
  });

  it('give the same state in whatever order and however often they are delivered', async () => {
    const sets = fc.array(fc.constantFrom<string[]>([], ['file/a'], ['service/x']), { minLength: 1, maxLength: 12 });
    const delivery = sets.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray([...all.keys(), ...all.keys()], { minLength: all.length * 2 }), fc.integer({ min: 1, max: 4 })));
    await fc.assert(
      fc.asyncProperty(delivery, async ([all, order, size]) => {
        const [straight, mixed] = [await sentOut(), await sentOut()];
        const of = (on: typeof straight, i: number): NodeReport => report(on.on, i + 1, on.sent, (all[i] ?? []).length === 0 ? {} : { [on.name]: all[i] ?? [] });
        const at = tick();
        for (const i of all.keys()) await recordReports(db, [of(straight, i)], at);
        for (let i = 0; i < order.length; i += size) await recordReports(db, order.slice(i, i + size).map((one) => of(mixed, one)), at);
        const state = async (on: typeof straight): Promise<object> => {
          const { failing, isApplied, applied } = await placement(on.name);
          return { failing, isApplied, wasHeld: applied !== null };
        };
        expect(await state(mixed)).toEqual(await state(straight));
      }),
      { numRuns: 15 },
    );
  });

  it('of a new epoch begin anew: what the host before held no longer counts, and it is told again', async () => {
    const { name, on, sent } = await sentOut();
    await recordReports(db, [report(on, 7, sent)], tick());
    await recordNodeBeats(db, [beat(on, { received: sent, applied: sent })], tick(), times);
    await recordReports(db, [report(on, 1, { ...sent, modules: {} }, {}, { epoch: 'e2', declaration: null })], tick());
    expect(await placement(name)).toMatchObject({ isApplied: false, applied: null });
    expect((await nodeDetail(db, on))?.epochs).toBe(2);
    expect(await send(db, on)).toMatchObject({ sequence: sent.sequence + 1 });
    // What comes late of the epoch before is kept and does not count, and begins no third.
    await recordReports(db, [report(on, 8, sent)], tick());
    await recordNodeBeats(db, [beat(on, { received: sent })], tick(), times);
    expect(await placement(name)).toMatchObject({ isApplied: false });
    expect((await nodeDetail(db, on))?.epochs).toBe(2);
  });

  it('of a refusal fail every module that waits, and what runs stays as it was', async () => {
    const { name, on, sent } = await sentOut();
    for (const number of [1, 2, 3]) await recordReports(db, [report(on, number, sent, {}, { modules: [], declaration: null, refused: { sequence: sent.sequence, reason: 'bad signature' } })], tick());
    expect(await placement(name)).toMatchObject({ failing: { resources: ['declaration'], count: 3, message: 'refused: bad signature' } });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ refused: { reason: 'bad signature' } }]);
    await recordReports(db, [report(on, 4, sent)], tick());
    expect(await placement(name)).toMatchObject({ isApplied: true, failing: null });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ refused: null }]);
  });

  it('about the declaration before name the build that it carried', async () => {
    const { name, on, sent } = await sentOut();
    const next = await fitBuild(db, name, B, { resources: [{ file: { path: '/etc/new', content: 'new' } }] });
    await declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' });
    await send(db, on);
    await recordReports(db, [report(on, 1, sent)], tick());
    expect(await placement(name)).toMatchObject({ build: { id: next }, applied: { commit: A }, isApplied: false });
  });

  it('of a node that nobody added are dropped, and the kept ones are bounded', async () => {
    const { on, sent } = await sentOut();
    expect(await recordReports(db, [report('nobody', 1, sent)], tick())).toEqual([]);
    for (let number = 1; number <= 100; number += 10) await recordReports(db, Array.from({ length: 10 }, (_, i) => report(on, number + i, sent)), tick());
    const kept = async (): Promise<number> => (await db.query('select from report where node = $1', [on])).length;
    expect(await kept()).toBeLessThanOrEqual(40);
    await prune(db);
    expect(await kept()).toBe(20);
    expect(await recordReports(db, [report(on, 3, sent, { x: ['y'] })], tick())).toEqual([]);
  });
});

describe('beats', () => {
  it('give a node its key once; another one is refused and shown', async () => {
    const { on } = await declared();
    expect(await nodeKeys(db, [on, 'nobody'])).toEqual(new Map([[on, null]]));
    expect(await recordNodeBeats(db, [beat(on)], tick(), times)).toEqual({ refused: [] });
    const seen = tick();
    await recordNodeBeats(db, [beat(on)], seen, times);
    expect(await recordNodeBeats(db, [beat(on, { publicKey: 'another', hostVersion: 'evil' })], tick(), times)).toEqual({ refused: [on] });
    expect(await nodeKeys(db, [on])).toEqual(new Map([[on, `key of ${on}`]]));
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ keyRefused: 'another', lastBeatAt: seen.toISOString() }]);
    expect(await nodeDetail(db, on)).toMatchObject({ hostVersion: '1', keyRefused: 'another' });
  });

  it('that are missed make away, a word with a since; one that comes back is news for who waits', async () => {
    const { name, on } = await declared();
    const seen = tick();
    await recordNodeBeats(db, [beat(on)], seen, times);
    const away = new Date(seen.getTime() + times.hostAway);
    expect((await facts(db, name, new Date(away.getTime() - 1_000))).placements).toMatchObject([{ awaySince: null }]);
    expect((await facts(db, name, away)).placements).toMatchObject([{ awaySince: seen.toISOString() }]);
    expect(await nodeStatuses(db, away, times, [on])).toMatchObject([{ presence: 'away' }]);
    const { version } = await facts(db, name);
    await recordNodeBeats(db, [beat(on)], away, times);
    const back = (await facts(db, name)).version;
    expect(back).toBeGreaterThan(version);
    await recordNodeBeats(db, [beat(on)], new Date(away.getTime() + 15_000), times);
    expect((await facts(db, name)).version).toBe(back);
  });
});

describe('nodes', () => {
  it('are added once, listed, and removed with what they held', async () => {
    const { name, on } = await declared();
    await expect(addNode(db, { name: on, site: 'home', facts: {}, brokerUser: 'x' })).rejects.toMatchObject({ kind: 'usage' });
    expect(await listNodes(db)).toContainEqual({ name: on, site: 'home', facts: {}, brokerUser: `node-${on}`, publicKey: null });
    await expect(assign(db, name, 'nobody', why)).rejects.toMatchObject({ message: 'there is no node nobody: tally node list' });
    await removeNode(db, on, why);
    expect((await facts(db, name)).placements).toEqual([]);
  });
});

describe('plan and health', () => {
  it('name what is next, for which nodes, and what is wrong with the mesh itself', async () => {
    const { name, on } = await declared();
    await fitBuild(db, name, B);
    await recordComparison(db, compare(await facts(db, name), times));
    expect((await planRows(db)).find((row) => row.module === name)).toMatchObject({ next: 'declare', commit: B, undeclared: [on], outstanding: [on] });
    await recordDeadLetter(db, { queue: 'answers', reason: 'not JSON', body: '{\0' });
    await read(db, name, A);
    const health = await meshHealth(db);
    expect(health).toMatchObject({ deadLetters: 1, newestDeadLetter: { queue: 'answers', reason: 'not JSON' } });
    expect(health.uncompared).toBeGreaterThan(0);
    expect(health.oldestOwedModule).not.toBeNull();
  });
});

import fc from 'fast-check';
import { compare } from '../../src/domain/comparison';
import {
  addNode,
  assign,
  type Db,
  declareBuild,
  listNodes,
  meshHealth,
  nodeDetail,
  nodeKeys,
  nodeStatuses,
  planRows,
  prune,
  recordComparison,
  recordDeadLetter,
  recordNodeBeats,
  recordReports,
  removeNode,
  stuckStatuses,
} from '../../src/inventory';
import type { NodeReport } from '../../src/schema/messages';
import { A, B, beat, declared, facts, fitBuild, openStore, placement, read, report, send, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const why = { who: 'ada', why: 'test' };

/** How often the row of a placement was written. */
async function written(name: string): Promise<string> {
  const [row] = await db.query<{ xmin: string }>('select xmin::text from placement where module = $1', [name]);
  return row?.xmin ?? '';
}

describe('reports', () => {
  async function sentOut(): Promise<{ name: string; on: string; sent: NonNullable<Awaited<ReturnType<typeof send>>> }> {
    const { name, on } = await declared(db);
    const sent = await send(db, on);
    if (sent === null) throw new Error('not sent');
    return { name, on, sent };
  }

  it('make a placement applied, and one that changes nothing touches no placement', async () => {
    const { name, on, sent } = await sentOut();
    expect(await recordReports(db, [report(on, 1, sent)], tick())).toEqual([name]);
    expect(await placement(db, name)).toMatchObject({ isApplied: true, applied: { commit: A }, waitingOn: null });
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
    expect(await placement(db, name)).toMatchObject({
      isApplied: false,
      waitingOn: 'apply',
      detail: 'exit status 203, report 3',
      failing: { resources: ['service/x'], count: 3, since: since.toISOString(), message: 'exit status 203, report 3' },
    });
    expect((await stuckStatuses(db, tick(), times)).filter((one) => one.module === name)).toMatchObject([{ node: on, count: 3 }]);
    expect(compare(await facts(db, name), times)).toMatchObject({ situation: 'stuck', stuckOn: [on] });
    await recordReports(db, [report(on, 4, sent)], tick());
    expect(await placement(db, name)).toMatchObject({ isApplied: true, failing: null, outstandingSince: null });
  });

  it('give the same state in whatever order and however often they are delivered', async () => {
    const sets = fc.array(fc.constantFrom<string[]>([], ['file/a'], ['service/x']), { minLength: 1, maxLength: 12 });
    const delivery = sets.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray([...all.keys(), ...all.keys()], { minLength: all.length * 2 }), fc.integer({ min: 1, max: 4 })),
    );
    await fc.assert(
      fc.asyncProperty(delivery, async ([all, order, size]) => {
        const [straight, mixed] = [await sentOut(), await sentOut()];
        const of = (on: typeof straight, i: number): NodeReport =>
          report(on.on, i + 1, on.sent, (all[i] ?? []).length === 0 ? {} : { [on.name]: all[i] ?? [] });
        const at = tick();
        for (const i of all.keys()) await recordReports(db, [of(straight, i)], at);
        for (let i = 0; i < order.length; i += size)
          await recordReports(
            db,
            order.slice(i, i + size).map((one) => of(mixed, one)),
            at,
          );
        const state = async (on: typeof straight): Promise<object> => {
          const { failing, isApplied, applied } = await placement(db, on.name);
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
    expect(await placement(db, name)).toMatchObject({ isApplied: false, applied: null });
    expect((await nodeDetail(db, on))?.epochs).toBe(2);
    expect(await send(db, on)).toMatchObject({ sequence: sent.sequence + 1 });
    // What comes late of the epoch before is kept and does not count, and begins no third.
    await recordReports(db, [report(on, 8, sent)], tick());
    await recordNodeBeats(db, [beat(on, { received: sent })], tick(), times);
    expect(await placement(db, name)).toMatchObject({ isApplied: false });
    expect((await nodeDetail(db, on))?.epochs).toBe(2);
  });

  it('of a refusal fail every module that waits, and what runs stays as it was', async () => {
    const { name, on, sent } = await sentOut();
    for (const number of [1, 2, 3])
      await recordReports(
        db,
        [report(on, number, sent, {}, { modules: [], declaration: null, refused: { sequence: sent.sequence, reason: 'bad signature' } })],
        tick(),
      );
    expect(await placement(db, name)).toMatchObject({ failing: { resources: ['declaration'], count: 3, message: 'refused: bad signature' } });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ refused: { reason: 'bad signature' } }]);
    await recordReports(db, [report(on, 4, sent)], tick());
    expect(await placement(db, name)).toMatchObject({ isApplied: true, failing: null });
    expect(await nodeStatuses(db, tick(), times, [on])).toMatchObject([{ refused: null }]);
  });

  it('about the declaration before name the build that it carried', async () => {
    const { name, on, sent } = await sentOut();
    const next = await fitBuild(db, name, B, { resources: [{ file: { path: '/etc/new', content: 'new' } }] });
    await declareBuild(db, { module: name, buildId: next, nodes: [on], by: 'auto' });
    await send(db, on);
    await recordReports(db, [report(on, 1, sent)], tick());
    expect(await placement(db, name)).toMatchObject({ build: { id: next }, applied: { commit: A }, isApplied: false });
  });

  it('of a node that nobody added are dropped, and the kept ones are bounded', async () => {
    const { on, sent } = await sentOut();
    expect(await recordReports(db, [report('nobody', 1, sent)], tick())).toEqual([]);
    for (let number = 1; number <= 100; number += 10)
      await recordReports(
        db,
        Array.from({ length: 10 }, (_, i) => report(on, number + i, sent)),
        tick(),
      );
    const kept = async (): Promise<number> => (await db.query('select from report where node = $1', [on])).length;
    expect(await kept()).toBeLessThanOrEqual(40);
    await prune(db);
    expect(await kept()).toBe(20);
    expect(await recordReports(db, [report(on, 3, sent, { x: ['y'] })], tick())).toEqual([]);
  });
});

describe('beats', () => {
  it('give a node its key once; another one is refused and shown', async () => {
    const { on } = await declared(db);
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
    const { name, on } = await declared(db);
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
    const { name, on } = await declared(db);
    await expect(addNode(db, { name: on, site: 'home', facts: {}, brokerUser: 'x' })).rejects.toMatchObject({ kind: 'usage' });
    expect(await listNodes(db)).toContainEqual({ name: on, site: 'home', facts: {}, brokerUser: `node-${on}`, publicKey: null });
    await expect(assign(db, name, 'nobody', why)).rejects.toMatchObject({ message: 'there is no node nobody: tally node list' });
    await removeNode(db, on, why, async () => undefined);
    expect((await facts(db, name)).placements).toEqual([]);
  });
});

describe('plan and health', () => {
  it('name what is next, for which nodes, and what is wrong with the mesh itself', async () => {
    const { name, on } = await declared(db);
    await fitBuild(db, name, B);
    await recordComparison(db, compare(await facts(db, name), times));
    expect((await planRows(db)).find((row) => row.module === name)).toMatchObject({
      next: 'declare',
      commit: B,
      undeclared: [on],
      outstanding: [on],
    });
    await recordDeadLetter(db, { queue: 'answers', reason: 'not JSON', body: '{\0' });
    await read(db, name, A);
    const health = await meshHealth(db);
    expect(health).toMatchObject({ deadLetters: 1, newestDeadLetter: { queue: 'answers', reason: 'not JSON' } });
    expect(health.uncompared).toBeGreaterThan(0);
    expect(health.oldestOwedModule).not.toBeNull();
  });
});

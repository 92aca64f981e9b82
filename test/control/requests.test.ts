import { type Control, startControl } from '../../src/control';
import { recordAnswer } from '../../src/inventory/answers';
import { EXCHANGES, QUEUES, ROUTES } from '../../src/link';
import { buildOf, type ControlWorld, controlWorld, inspectionOf, moduleAt } from '../support/control';
import { eventually } from '../support/eventually';

let world: ControlWorld;
beforeAll(async () => {
  world = await controlWorld();
});
afterAll(() => world.close());

async function start(): Promise<Control> {
  return await startControl(world.deps, { ensureTemporal: async () => undefined, runningModules: async () => new Set(), connections: () => 0 });
}

/** An open build of a module of its own, in the state in which `changes` puts it. */
async function buildIn(module: string, changes: string): Promise<string> {
  await moduleAt(world, module);
  const about = { v: 1, request: await inspectionOf(world, module), attempt: 1, builder: 'b', startedAt: NOON, endedAt: NOON } as const;
  await recordAnswer(world.db, { ...about, kind: 'inspect', outcome: 'valid', manifest: { module }, notes: [] }, world.deps.now(), world.deps.times);
  const request = await buildOf(world, module);
  await world.db.query(`update request set ${changes} where id = $1`, [request]);
  return request;
}

const NOON = '2026-11-29T12:00:00.000Z';
const state = async (request: string) =>
  await world.row<{ state: string; attempt: number }>('select state, attempt from request where id = $1', [request]);

describe('the request pass', () => {
  it('takes no builder for lost whom it could not have heard: the control plane was away', async () => {
    const taken = `state = 'taken', taken_by = 'builder-1', beat_at = now() - interval '10 minutes'`;
    const request = await buildIn('kiosk', taken);
    const other = await buildIn('ended', `state = 'cancelled'`);
    const control = await start();
    world.atEnd(() => control.stop());
    // A whole pass has been.
    await eventually(async () => (await world.count('request where id = $1 and completed_at is not null', [other])) === 1);
    expect(await state(request)).toEqual({ state: 'taken', attempt: 1 });
    world.advance(61_000);
    await eventually(async () => (await state(request)).attempt === 2);
  });

  it('publishes what its activity, in a backoff of its own, does not', async () => {
    const request = await buildIn('forgotten', `state = 'requested', requested_at = now() - interval '10 minutes'`);
    await eventually(async () => (await state(request)).state === 'published');
    const { messageCount } = await world.link.withChannel((channel) => channel.checkQueue('build.linux-amd64'));
    expect(messageCount).toBe(1);
  });
});

it('an answer for a module that was removed meanwhile is no message that could not be read', async () => {
  const request = await buildIn('removed', `state = 'taken', taken_by = 'builder-1', beat_at = now()`);
  await world.db.query(`delete from module where name = 'removed'`);
  const answered = { v: 1, request, attempt: 1, builder: 'builder-1', startedAt: NOON, endedAt: NOON, kind: 'build', outcome: 'cancelled' };
  await world.link.publish(EXCHANGES.builders, ROUTES.answer, { ...answered, reason: 'there is no such request', log: null, steps: {} });
  const unread = { v: 1, nonsense: true };
  await world.link.publish(EXCHANGES.builders, ROUTES.answer, unread);
  // That one came after it, and has been taken in.
  await eventually(async () => (await world.count('dead_letter where body = $1', [JSON.stringify(unread)])) === 1);
  await eventually(async () => (await world.link.withChannel((channel) => channel.checkQueue(QUEUES.answers))).messageCount === 0);
  expect(await world.count('dead_letter where body like $1', [`%${request}%`])).toBe(0);
});

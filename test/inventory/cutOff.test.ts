import { compare } from '../../src/domain/comparison';
import { type Db, declareBuild, openInspection, prepareSend, previousFitBuild, recordAnswer, recordReports } from '../../src/inventory';
import type { Answer } from '../../src/schema/messages';
import { answerFit, buildFit, moduleWith, namesOf, open } from './graphMesh';
import { A, deriving, facts, module, node, openStore, placement, read, report, send, tick, times, valid } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const next = async (name: string) => compare(await facts(db, name), times);

test('an input moved and the same artifact came out: the placement moves to the new build, and nothing is sent', async () => {
  await moduleWith(db, 'core', 'a', { exports: ['m/core'] });
  await buildFit(db, 'core', 'core, first');
  await module(db, 'board');
  await read(db, 'board', A);
  const manifest = { module: 'board', declare: 'auto', resources: [{ archive: { path: '/opt/board', from: 'out' } }] };
  const inspection = (await openInspection(db, 'board', A)) ?? '';
  await recordAnswer(db, { ...valid(inspection, manifest), ...namesOf({ imports: ['m/core'] }) } as Answer, tick(), times);
  const first = await buildFit(db, 'board', 'board');
  await node(db, 'alpha', 'board');
  expect(await declareBuild(db, { module: 'board', buildId: first, nodes: ['alpha'], by: 'auto' })).toBe(1);
  const sent = await send(db, 'alpha');
  if (sent === null) throw new Error('nothing was sent');
  await recordReports(db, [report('alpha', 1, sent)], tick());
  expect(await next('board')).toMatchObject({ situation: 'in step' });

  await moduleWith(db, 'core', 'b', { exports: ['m/core'] });
  await buildFit(db, 'core', 'core, second');
  const stale = await next('board');
  expect(stale).toMatchObject({ next: { kind: 'build', requestId: null }, verdict: 'outstanding', situation: 'building' });
  expect(stale.reason).toMatch(/^core moved from [0-9a-f]{7} to [0-9a-f]{7}$/);
  const again = await open(db, 'board');
  await answerFit(db, again, 'board');
  expect((await next('board')).next).toMatchObject({ kind: 'declare', buildId: again.id, nodes: ['alpha'] });
  expect(await declareBuild(db, { module: 'board', buildId: again.id, nodes: ['alpha'], by: 'auto' })).toBe(1);

  expect((await prepareSend(db, 'alpha', deriving, tick())).kind).not.toBe('send');
  expect(await placement(db, 'board')).toMatchObject({ build: { id: again.id }, isApplied: true, outstandingSince: null });
  expect(await next('board')).toMatchObject({ situation: 'in step', next: { kind: 'nothing' } });
});

test('a module whose new closure fails while its commit is declared: what is declared stays, and the line says so', async () => {
  const found = await facts(db, 'board');
  const failed = { ...found, headBuild: { ...(found.headBuild ?? fail()), verdict: 'failed' as const, reason: '1 of 14 tests' } };
  expect(compare(failed, times)).toMatchObject({ situation: 'failed', next: { kind: 'nothing' }, needsPerson: true });
  expect(compare(failed, times).line).toContain('1 of 14 tests · the build with the inputs of before stays declared · declared on 1');
});

test('of a module that asks first nobody is asked about a build that changes nothing; one that does is asked about, and what is declared is said', async () => {
  const asking = async () => ({ ...(await facts(db, 'board')), effectiveDeclare: 'ask' as const });
  await moduleWith(db, 'core', 'c', { exports: ['m/core'] });
  await buildFit(db, 'core', 'core, third');
  const same = await buildFit(db, 'board', 'board');
  expect(compare(await asking(), times).next).toMatchObject({ kind: 'declare', buildId: same, nodes: ['alpha'] });
  expect(await declareBuild(db, { module: 'board', buildId: same, nodes: ['alpha'], by: 'auto' })).toBe(1);
  expect(await previousFitBuild(db, 'board')).toBeNull();

  await moduleWith(db, 'core', 'd', { exports: ['m/core'] });
  await buildFit(db, 'core', 'core, fourth');
  const other = await buildFit(db, 'board', 'board, otherwise');
  const found = compare(await asking(), times);
  expect(found).toMatchObject({ next: { kind: 'ask', buildId: other }, situation: 'asking', needsPerson: true });
  expect(found.line).toContain('fit · declared on 1 (with the inputs of before) · applied on');
  expect(await declareBuild(db, { module: 'board', buildId: other, nodes: ['alpha'], by: 'ada' })).toBe(1);
  expect(compare(await asking(), times).line).toContain('declared on 1 · applied on');
  // Back from a bad input: of the same commit, and yet another build.
  expect(await previousFitBuild(db, 'board')).toMatchObject({ id: same });
});

function fail(): never {
  throw new Error('the head was not built');
}

/** The plan as a rule over hand-made rows and edges. */
import { planOf } from '../../src/api/plan';
import { planLines } from '../../src/cli/planLines';
import type { PlanRow, StandingRow } from '../../src/inventory';
import type { EdgeDetail, PlannedModule } from '../../src/inventory/asking';
import { type PlanAnswer, planAnswer } from '../../src/schema/graphApi';
import { edges } from '../support/edges';

const HEAD = '4f2c1a9'.padEnd(40, '0');
const NOW = new Date('2026-11-29T15:00:00.000Z');
const GRAPH = edges(
  'board-types > core types.go:3',
  'kiosk > board-types web/main.ts:1',
  'meshboard > board-types board/board.go:7',
  'meshboard > core main.go:12',
  'probe > core? probe_test.go:5',
);

function row(module: string, next: PlanRow['next'], changes: Partial<PlanRow> = {}): PlanRow {
  return { module, next, commit: HEAD, reason: `source moved to 4f2c1a9`, needsPerson: false, undeclared: [], outstanding: [], ...changes };
}

function plan(
  rows: readonly PlanRow[],
  list: readonly EdgeDetail[],
  changes: Record<string, Partial<PlannedModule>> = {},
  supposed: string | null = null,
  standing: readonly StandingRow[] = [],
): PlanAnswer {
  const names = new Set([
    ...rows.map((one) => one.module),
    ...list.flatMap((edge) => [edge.module, edge.input]),
    ...(supposed === null ? [] : [supposed]),
  ]);
  const modules = new Map(
    [...names].map((module) => [
      module,
      { module, head: HEAD, policy: 'auto' as const, isHeld: false, isBuildable: true, staleSince: null, nodes: [], ...changes[module] },
    ]),
  );
  return planAnswer.parse(planOf({ rows, edges: list, modules, nodes: [], standing, now: NOW, supposed }));
}

function shown({ steps }: PlanAnswer): string[] {
  return steps.map((step) => `${step.level} ${step.what} ${step.module}${step.after.length > 0 ? ` after ${step.after.join(',')}` : ''}`);
}

test('what moves comes first, then what builds on it, each once and after all that it builds on', () => {
  const { steps, ...rest } = plan([row('core', 'build')], GRAPH);
  expect(shown({ steps, ...rest })).toEqual([
    '1 build core',
    '2 build board-types after core',
    '2 build probe after core',
    '3 build kiosk after board-types',
    '3 build meshboard after board-types,core',
  ]);
  expect(steps.map((step) => [step.module, step.because, step.unless])).toEqual([
    ['core', 'source moved to 4f2c1a9', []],
    ['board-types', 'board-types ← core (types.go:3)', ['core']],
    ['probe', 'probe ← core (probe_test.go:5, tests only)', ['core']],
    ['kiosk', 'kiosk ← board-types (web/main.ts:1) ← core (types.go:3)', ['core']],
    ['meshboard', 'meshboard ← core (main.go:12)', ['core']],
  ]);
});

test('a module that waits for its inputs is built after them, surely; one that waits for a person is not', () => {
  const rows = [
    row('core', 'build'),
    row('board-types', 'wait', { reason: 'waits for core' }),
    row('site', 'wait', { reason: 'no effective build' }),
  ];
  const answer = plan(rows, GRAPH, { 'board-types': { staleSince: NOW.toISOString() } });
  expect(shown(answer)).toEqual([
    '1 build core',
    '2 build board-types after core',
    '2 build probe after core',
    '3 build kiosk after board-types',
    '3 build meshboard after board-types,core',
    '0 wait site',
  ]);
  expect(answer.steps[1]).toMatchObject({ because: 'waits for core', unless: [] });
  expect(answer.steps[3]?.unless).toEqual(['board-types', 'core']);
});

test('what waits for an input that only a person can mend is not said to be built, and what builds on it comes after', () => {
  const stale = { staleSince: NOW.toISOString() };
  const rows = [row('core', 'wait', { reason: 'waits for lib', needsPerson: true }), row('board-types', 'wait', { reason: 'waits for core' })];
  const answer = plan(rows, GRAPH.slice(0, 1), { core: stale, 'board-types': stale });
  expect(shown(answer)).toEqual(['1 wait core', '2 build board-types after core']);
});

test('what is being built while an input of it moves is built once more, after that and unless it comes out the same', () => {
  const answer = plan([row('core', 'build'), row('board-types', 'build')], GRAPH);
  expect(shown(answer)).toEqual([
    '1 build board-types',
    '1 build core',
    '2 build board-types after core',
    '2 build probe after core',
    '3 build kiosk after board-types',
    '3 build meshboard after board-types,core',
  ]);
  expect(answer.steps[2]).toMatchObject({
    because: 'board-types ← core (types.go:3), which moves while board-types is being built',
    unless: ['core'],
  });
  expect(answer.steps[4]?.unless).toEqual(['board-types', 'core']);
});

test('what is being built while only an input of its tests moves is built once more as well; what has yet to be inspected is not', () => {
  const answer = plan([row('core', 'build'), row('probe', 'build'), row('board-types', 'inspect')], GRAPH.slice(-1).concat(GRAPH.slice(0, 1)));
  expect(shown(answer)).toEqual(['1 inspect board-types', '1 build core', '1 build probe', '2 build probe after core']);
  expect(answer.steps[3]).toMatchObject({
    because: 'probe ← core (probe_test.go:5, tests only), which moves while probe is being built',
    unless: ['core'],
  });
});

test('what is only to be declared or sent makes nothing stale, and comes last', () => {
  const rows = [row('core', 'declare', { undeclared: ['alpha'] }), row('board-types', 'track', { outstanding: ['beta'] }), row('lib', 'inspect')];
  expect(shown(plan(rows, []))).toEqual(['1 inspect lib', '0 declare core', '0 send board-types']);
});

test('what follows a build is said by the policy, the hold and the nodes', () => {
  const answer = plan([row('core', 'build')], GRAPH, {
    kiosk: { nodes: ['alpha'], policy: 'ask' },
    meshboard: { nodes: ['alpha', 'beta'] },
    probe: { nodes: ['beta'], isHeld: true },
  });
  expect(Object.fromEntries(answer.steps.map((step) => [step.module, step.afterwards]))).toEqual({
    core: null,
    'board-types': null,
    kiosk: 'ask',
    meshboard: 'declare',
    probe: 'held',
  });
});

test('nothing follows through a cycle or an invalid head, and the cycle is named', () => {
  const list = edges('a > core', 'a > b', 'b > a', 'c > a', 'bad > core', 'd > bad');
  const answer = plan([row('core', 'build')], list, { bad: { isBuildable: false } });
  expect(shown(answer)).toEqual(['1 build core']);
  expect(answer.cycles).toEqual([['a', 'b', 'a']]);
});

test('tests that import what builds on their module are no cycle, and each is built once', () => {
  const answer = plan([row('a', 'build')], edges('a > b', 'b > a? a_test.go:1', 'c > b'));
  expect(shown(answer)).toEqual(['1 build a', '2 build b after a', '3 build c after b']);
  expect(answer.cycles).toEqual([]);
});

test('a change of a member of a cycle that is only supposed is not built', () => {
  const answer = plan([], edges('a > b', 'b > a', 'c > a'), {}, 'a');
  expect(answer).toMatchObject({ steps: [], cycles: [['a', 'b', 'a']] });
});

test('of a change that is only supposed nothing else is told', () => {
  const answer = plan([row('site', 'build'), row('core', 'track')], GRAPH, {}, 'core');
  expect(answer).toMatchObject({ supposed: 'core', nodes: [] });
  expect(shown(answer)[0]).toBe('1 build core');
  expect(answer.steps).toHaveLength(5);
  expect(answer.steps.some((step) => step.module === 'site')).toBe(false);
});

describe('as text', () => {
  test('each step says its order, what follows and because of what', () => {
    const answer = plan([row('core', 'build')], GRAPH.slice(0, 2), { kiosk: { nodes: ['alpha', 'beta'], policy: 'ask' } });
    expect(planLines(answer, 80, false)).toEqual([
      '1  build  core         4f2c1a9  on no node',
      '   because source moved to 4f2c1a9',
      '2  build  board-types  4f2c1a9  on no node',
      '   because board-types ← core (types.go:3); after core; may be cut off if core',
      '   comes out the same',
      '3  build  kiosk        4f2c1a9  then on alpha, beta, when a person says so',
      '   because kiosk ← board-types (web/main.ts:1) ← core (types.go:3); after',
      '   board-types; may be cut off if core comes out the same',
    ]);
  });

  test('a plan of nothing does not say that all agrees where modules stand still', () => {
    expect(planLines(plan([], []), 80, false)).toEqual(['nothing is to be done: source, built, declared and applied agree']);
    const standing = [
      { module: 'core', situation: 'cycle' as const },
      { module: 'lib', situation: 'failed' as const },
      { module: 'site', situation: 'held' as const },
      { module: 'web', situation: 'invalid' as const },
    ];
    expect(planLines(plan([], [], {}, null, standing), 80, false)).toEqual([
      'nothing is to be done by itself: core (cycle), lib (failed), site (held) and 1',
      'more → tally status',
    ]);
    expect(planLines(plan([row('core', 'build')], [], {}, null, standing.slice(1, 2)), 80, false).at(-1)).toBe(
      'not by itself: lib (failed) → tally status',
    );
    expect(plan([], [], {}, 'core', standing).standing).toEqual([]);
  });

  test('of a large mesh a line tells a level, and --all each step', () => {
    const wide = edges(...Array.from({ length: 10_000 }, (_, at) => (at < 5_000 ? `a-${at} > core` : `b-${at} > a-${at - 5_000}`)));
    const answer = plan([row('core', 'build')], wide);
    expect(planLines(answer, 80, false)).toEqual([
      '1  build  1 module      on no node  core',
      '2  build  5000 modules  on no node  a-0, a-1, a-10 and 4997 more; unless core c…',
      '3  build  5000 modules  on no node  b-5000, b-5001, b-5002 and 4997 more; unles…',
      '',
      '10001 steps: tally plan --all tells each with its reason',
    ]);
    expect(planLines(answer, 80, true).length).toBeGreaterThan(20_000);
  });

  test('a chain of 10,000 is as many levels, each with a short reason', () => {
    const answer = plan([row('m-0', 'build')], edges(...Array.from({ length: 9_999 }, (_, at) => `m-${at + 1} > m-${at} a.go:1`)));
    expect(answer.steps.at(-1)).toMatchObject({
      module: 'm-9999',
      level: 10_000,
      because: 'm-9999 ← m-9998 (a.go:1) ← m-9997 (a.go:1) ← m-9996 (a.go:1) ← … 9995 more ← m-0 (a.go:1)',
    });
    expect(planLines(answer, 80, false).length).toBeLessThan(100);
  });
});

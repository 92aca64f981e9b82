/** The graph as text: a tree that fits the terminal, and what Graphviz itself reads. */
import { Graphviz } from '@hpcc-js/wasm-graphviz';
import fc from 'fast-check';
import stringWidth from 'string-width';
import { dotLines } from '../../src/cli/dot';
import { graphLines } from '../../src/cli/graphTree';
import { orderOf } from '../../src/domain/graph';
import type { EdgeDetail } from '../../src/inventory/asking';
import type { GraphAnswer } from '../../src/schema/graphApi';
import { edges } from '../support/edges';

function graphOf(list: readonly EdgeDetail[], changes: Partial<GraphAnswer> = {}): GraphAnswer {
  const names = [...new Set(list.flatMap((edge) => [edge.module, edge.input]))].sort();
  return {
    now: '2026-11-29T15:00:00.000Z',
    module: null,
    direction: 'outbound',
    modules: names.map((module) => ({ module, situation: 'in step', inStep: true })),
    edges: list,
    cycles: orderOf(list.filter((edge) => !edge.isTest)).cycles,
    ...changes,
  };
}

const DIAMOND = edges(
  'board-types > core types.go:3',
  'kiosk > board-types web/main.ts:1',
  'meshboard > board-types board/board.go:7',
  'meshboard > core main.go:12',
  'meshboard > testkit? main_test.go:5',
);

test('what is shared is unfolded once and referred to after', () => {
  expect(graphLines(graphOf(DIAMOND), 80, 100)).toEqual([
    'kiosk',
    '└─ board-types  web/main.ts:1',
    '   └─ core  types.go:3',
    'meshboard',
    '├─ board-types  board/board.go:7 · (above)',
    '├─ core  main.go:12',
    '└─ testkit  main_test.go:5 · tests only',
  ]);
});

test('of one module what it builds on, or what builds on it', () => {
  const outbound = DIAMOND.filter((edge) => edge.module !== 'kiosk');
  expect(graphLines(graphOf(outbound, { module: 'meshboard' }), 80, 100)).toEqual([
    'meshboard',
    '├─ board-types  board/board.go:7',
    '│  └─ core  types.go:3',
    '├─ core  main.go:12',
    '└─ testkit  main_test.go:5 · tests only',
  ]);
  expect(graphLines(graphOf(DIAMOND.slice(0, 4), { module: 'core', direction: 'inbound' }), 80, 100)).toEqual([
    'core',
    '├─ board-types  types.go:3',
    '│  ├─ kiosk  web/main.ts:1',
    '│  └─ meshboard  board/board.go:7',
    '└─ meshboard  main.go:12',
  ]);
  const alone = graphOf([], { module: 'core', modules: [{ module: 'core', situation: 'in step', inStep: true }] });
  expect(graphLines(alone, 80, 100)).toEqual(['core', '  it builds on no module']);
  expect(graphLines({ ...alone, direction: 'inbound' }, 80, 100)).toEqual(['core', '  no module builds on it']);
});

test('a module that is not in step says what it is at', () => {
  const graph = graphOf(edges('kiosk > core a.ts:1'), {
    modules: [
      { module: 'core', situation: 'building', inStep: false },
      { module: 'kiosk', situation: null, inStep: false },
    ],
  });
  expect(graphLines(graph, 80, 100)).toEqual(['kiosk  not compared yet', '└─ core  a.ts:1 · building']);
});

test('a cycle is named and ends where it closes', () => {
  const graph = graphOf(edges('a > b b.go:1', 'b > c c.go:2', 'c > a a.go:3', 'd > a a.go:9'));
  expect(graphLines(graph, 80, 100)).toEqual([
    'd',
    '└─ a  a.go:9',
    '   └─ b  b.go:1',
    '      └─ c  c.go:2',
    '         └─ a  a.go:3 · (cycle)',
    'cycle: a → b → c → a: none of them is built (tally why a)',
  ]);
  // With no way in from outside it is shown all the same.
  expect(graphLines(graphOf(edges('b > c', 'c > b')), 80, 100)[0]).toBe('b');
});

test('a circle that only tests close is none, and one that is a cycle is said once', () => {
  const graph = graphOf(edges('a > b b.go:1', 'b > c c.go:2', 'c > b? c_test.go:3'));
  expect(graphLines(graph, 80, 100)).toEqual(['a', '└─ b  b.go:1', '   └─ c  c.go:2', '      └─ b  c_test.go:3 · tests only · (above)']);
  const modules = [{ module: 'b', situation: 'cycle', inStep: false }];
  expect(graphLines(graphOf(edges('b > c c.go:1', 'c > b b.go:1'), { modules }), 80, 100).slice(0, 3)).toEqual([
    'b  cycle',
    '└─ c  c.go:1',
    '   └─ b  b.go:1 · (cycle)',
  ]);
});

test('modules without edges stand in a line, and are counted where there are many', () => {
  const modules = ['site', 'core', 'kiosk', 'greeter'].map((module) => ({ module, situation: 'in step', inStep: true }));
  expect(graphLines(graphOf(edges('kiosk > core a.ts:1'), { modules }), 80, 100).at(-1)).toBe('without edges: site · greeter');
  const many = Array.from({ length: 500 }, (_, at) => ({ module: `module-${at}`, situation: 'in step', inStep: true }));
  expect(graphLines(graphOf([], { modules: many }), 80, 100)).toEqual(['without edges: 500 modules']);
});

test('a chain of 10,000 goes on below where it lies too deep, each module once', () => {
  const chain = edges(...Array.from({ length: 9_999 }, (_, at) => `m-${at} > m-${at + 1} a.go:1`));
  const lines = graphLines(graphOf(chain), 80, Number.POSITIVE_INFINITY);
  expect(lines.length).toBeLessThan(11_000);
  expect(Math.max(...lines.map((line) => stringWidth(line)))).toBeLessThanOrEqual(80);
  const named = lines.filter((line) => !line.endsWith('(below)')).map((line) => /m-\d+/.exec(line)?.[0]);
  expect(new Set(named).size).toBe(10_000);
  expect(named.length).toBe(10_000);
});

test('more lines than are asked for are counted', () => {
  const wide = edges(...Array.from({ length: 300 }, (_, at) => `m-${at} > core a.go:1`));
  const lines = graphLines(graphOf(wide), 80, 200);
  expect(lines).toHaveLength(201);
  expect(lines.at(-1)).toBe('and 400 more lines: --all shows them');
});

const arbEdges = fc
  .uniqueArray(fc.tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 12 }), fc.boolean(), fc.string({ minLength: 1, maxLength: 90 })), {
    selector: ([a, b]) => `${a} ${b}`,
    maxLength: 40,
  })
  .map((pairs) =>
    pairs.map(
      ([a, b, isTest, file]): EdgeDetail => ({
        module: `m-${a}`,
        input: `m-${b}`,
        isTest,
        names: 1,
        evidence: [{ language: 'go', name: `n/${b}`, artifact: `m-${b}`, file, line: 1, isTest }],
      }),
    ),
  );

test('whatever the graph is, a line a module and an edge at most, each fits, and no module is left out', () => {
  fc.assert(
    fc.property(arbEdges, fc.constantFrom('outbound' as const, 'inbound' as const), (list, direction) => {
      const graph = graphOf(list, { direction, cycles: [] });
      const lines = graphLines(graph, 80, 1_000);
      expect(lines.every((line) => stringWidth(line) <= 80 && !/\p{Cc}/u.test(line))).toBe(true);
      // Each edge once, each root once more, and once more what goes on below.
      expect(lines.length).toBeLessThanOrEqual(list.length + 2 * graph.modules.length);
      for (const { module } of graph.modules) expect(lines.some((line) => line.replace(/^[│├└─ ]+/, '').split(' ')[0] === module)).toBe(true);
    }),
  );
});

test('Graphviz reads what is written for it, whatever the files are called', async () => {
  const list = [...DIAMOND, ...edges('core > board-types back\\slash "quoted" \\N.go:4')];
  const said = (await Graphviz.load()).layout(dotLines(graphOf(list)).join('\n'), 'json', 'dot');
  const read = JSON.parse(said) as {
    objects: Array<{ name: string }>;
    edges: Array<{ tail: number; head: number; label: string; style?: string; color?: string }>;
  };
  const shown = read.edges.map(({ tail, head, label, style, color }) => [read.objects[tail]?.name, read.objects[head]?.name, label, style, color]);
  expect(shown).toContainEqual(['meshboard', 'board-types', 'board/board.go:7', undefined, undefined]);
  expect(shown).toContainEqual(['meshboard', 'testkit', 'main_test.go:5', 'dashed', undefined]);
  // In a label a backslash is an escape's, so that its own stays doubled until it is drawn.
  expect(shown).toContainEqual(['core', 'board-types', 'back\\\\slash "quoted" \\\\N.go:4', undefined, 'red']);
  expect(read.edges).toHaveLength(list.length);
});

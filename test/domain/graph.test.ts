import fc from 'fast-check';
import { type Edge, neighbours, orderOf, pathBetween, reachable } from '../../src/domain/graph';

const edges = (text: string): Edge[] =>
  text
    .split(' ')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [module = '', input = ''] = pair.split('>');
      return { module, input };
    });

describe('the order of a graph', () => {
  test('a diamond has its bottom last, once', () => {
    expect(orderOf(edges('left>top right>top bottom>left bottom>right'))).toEqual({ order: [['top'], ['left', 'right'], ['bottom']], cycles: [] });
  });

  test('a module with a short and a long way down stands after the long one', () => {
    expect(orderOf(edges('d>core d>b b>core')).order).toEqual([['core'], ['b'], ['d']]);
  });

  test('modules without edges are in it, and the same edge twice is one', () => {
    expect(orderOf(edges('b>a b>a'), ['z', 'a'])).toEqual({ order: [['a', 'z'], ['b']], cycles: [] });
  });

  test('a cycle is named from its first name, and what builds on it is in the order', () => {
    expect(orderOf(edges('b>c c>a a>b user>a base>user'))).toEqual({ order: [['user'], ['base']], cycles: [['a', 'b', 'c', 'a']] });
  });

  test('a module that builds on itself is a cycle of one', () => {
    expect(orderOf(edges('a>a b>a'))).toEqual({ order: [['b']], cycles: [['a', 'a']] });
  });

  test('two cycles are two, the shortest way round of each', () => {
    expect(orderOf(edges('a>b b>a b>c c>a x>y y>x')).cycles).toEqual([
      ['a', 'b', 'a'],
      ['x', 'y', 'x'],
    ]);
  });

  test('a chain of a hundred thousand is ordered', () => {
    const chain = Array.from({ length: 100_000 }, (_, n) => ({ module: `m${n + 1}`, input: `m${n}` }));
    expect(orderOf(chain).order).toHaveLength(100_001);
  });
});

test('the way between two modules is the shortest, and a way back to oneself has at least one step', () => {
  const { inputs, dependants } = neighbours(edges('d>b b>core d>x x>y y>core'));
  expect(pathBetween('d', 'core', inputs)).toEqual(['d', 'b', 'core']);
  expect(pathBetween('core', 'd', dependants)).toEqual(['core', 'b', 'd']);
  expect(pathBetween('core', 'd', inputs)).toBeNull();
  expect(pathBetween('d', 'd', inputs)).toBeNull();
});

describe('properties', () => {
  const name = fc.integer({ min: 0, max: 9 }).map((n) => `m${n}`);
  const arbEdges = fc.array(fc.record({ module: name, input: name }), { maxLength: 18 });

  test('the order respects every edge, and no level builds on itself', () => {
    fc.assert(
      fc.property(arbEdges, (all) => {
        const { order } = orderOf(all);
        const levelOf = new Map(order.flatMap((level, n) => level.map((module) => [module, n] as const)));
        for (const { module, input } of all) {
          const [of, on] = [levelOf.get(module), levelOf.get(input)];
          if (of !== undefined && on !== undefined) expect(on).toBeLessThan(of);
        }
      }),
    );
  });

  test('a module is in a level, once, or in a cycle: on one exactly when it reaches itself', () => {
    fc.assert(
      fc.property(arbEdges, fc.array(name), (all, more) => {
        const { order, cycles } = orderOf(all, more);
        const { inputs } = neighbours(all);
        const modules = new Set([...more, ...all.flatMap((edge) => [edge.module, edge.input])]);
        const placed = order.flat();
        expect(new Set(placed).size).toBe(placed.length);
        const selfReaching = [...modules].filter((module) => reachable([module], inputs).has(module));
        expect([...placed, ...selfReaching].sort()).toEqual([...modules].sort());
        expect(cycles.length === 0).toBe(selfReaching.length === 0);
        for (const cycle of cycles) {
          expect(cycle.at(0)).toBe(cycle.at(-1));
          cycle.slice(1).forEach((input, n) => {
            expect(inputs.get(cycle[n] ?? '')).toContain(input);
          });
        }
      }),
    );
  });

  test('what a module reaches, and who reaches it, agree', () => {
    fc.assert(
      fc.property(arbEdges, name, name, (all, from, to) => {
        const { inputs, dependants } = neighbours(all);
        expect(reachable([from], inputs).has(to)).toBe(reachable([to], dependants).has(from));
        expect(pathBetween(from, to, inputs) !== null).toBe(reachable([from], inputs).has(to));
      }),
    );
  });
});

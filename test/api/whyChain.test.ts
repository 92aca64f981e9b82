/** Why a module is not in step with its inputs, in chains of edges. */
import { whyChains } from '../../src/api/whyChain';
import type { Facts, GraphFacts, InputFacts } from '../../src/domain/facts';
import { type WhyChain, whyChain } from '../../src/schema/graphApi';
import { edges } from '../support/edges';
import { B, build, inStep } from '../support/facts';

const OLD = `sha256:1f2e3d4${'0'.repeat(57)}`;
const NEW = `sha256:9c8b7a6${'0'.repeat(57)}`;
const SINCE = '2026-11-29T14:02:10.000Z';
const GRAPH = edges('meshboard > board-types board/board.go:7', 'board-types > core types.go:3', 'meshboard > testkit? main_test.go:5');

function chains(graph: Partial<GraphFacts>, changes: Partial<Facts> = {}): WhyChain[] {
  const facts = inStep({ headBuild: null, ...changes });
  const found = whyChains({ ...facts, graph: { ...facts.graph, ...graph } }, GRAPH, new Map([[NEW, '4f2c1a9'.padEnd(40, '0')]]));
  return found.map((chain) => whyChain.parse(chain));
}

function says(graph: Partial<GraphFacts>, changes: Partial<Facts> = {}): string[] {
  return chains(graph, changes).map((chain) => chain.says);
}

function input(module: string, digest: string, changes: Partial<InputFacts> = {}): InputFacts {
  return { module, artifact: module, digest, isTest: false, ...changes };
}

test('an input that moved is named with both digests, its commit and the edges that lead to it', () => {
  expect(says({ inputs: [input('core', NEW)], builtInputs: [input('core', OLD)] })).toEqual([
    'meshboard ← board-types (board/board.go:7) ← core (types.go:3): core moved sha256:1f2e3d4… → sha256:9c8b7a6…, commit 4f2c1a9',
  ]);
});

test('of several artifacts of a module each is one of its own, and tests are said to be', () => {
  const inputs = [input('core', NEW, { artifact: 'core-go' }), input('core', OLD, { artifact: 'core-js' }), input('testkit', NEW, { isTest: true })];
  const builtInputs = [input('core', OLD, { artifact: 'core-go' }), input('core', OLD, { artifact: 'core-js' }), input('testkit', OLD)];
  expect(says({ inputs, builtInputs })).toEqual([
    'meshboard ← board-types (board/board.go:7) ← core (types.go:3): core/core-go moved sha256:1f2e3d4… → sha256:9c8b7a6…, commit 4f2c1a9',
    'meshboard ← testkit (main_test.go:5, tests only): testkit moved sha256:1f2e3d4… → sha256:9c8b7a6…, commit 4f2c1a9',
  ]);
});

test('an input that came and one that went are told apart from one that moved', () => {
  const graph = { inputs: [input('core', OLD)], builtInputs: [input('gone', OLD)] };
  expect(chains(graph).map((chain) => chain.kind)).toEqual(['appeared', 'gone']);
  expect(says(graph)).toEqual([
    'meshboard ← board-types (board/board.go:7) ← core (types.go:3): core is a new input, sha256:1f2e3d4…',
    'meshboard ← gone: gone is no input any more; it was built with sha256:1f2e3d4…',
  ]);
});

test('nothing has moved where the closure has its verdict, or where the commit was not built yet', () => {
  const moved = { inputs: [input('core', NEW)], builtInputs: [input('core', OLD)] };
  expect(says(moved, { headBuild: build() })).toEqual([]);
  expect(says({ inputs: [input('core', NEW)] }, { effective: build({ commit: B }) })).toEqual(['meshboard: source moved bbbbbbb → aaaaaaa']);
});

test('of very many that moved the first are named and the rest is counted', () => {
  const many = Array.from({ length: 500 }, (_, at) => `m-${at}`);
  const said = says({ inputs: many.map((name) => input(name, NEW)), builtInputs: many.map((name) => input(name, OLD)) });
  expect([said.length, said.at(-1)]).toEqual([21, 'meshboard: 480 more of its inputs moved']);
});

test('of very many that have not settled the first are named and the rest is counted', () => {
  const settling = Array.from({ length: 100 }, (_, at) => ({
    module: `m-${at}`,
    state: 'waiting' as const,
    takenBy: null,
    since: SINCE,
    progressAt: SINCE,
    path: ['meshboard', `m-${at}`],
  }));
  const said = says({ settling });
  expect([said.length, said.at(-1)]).toEqual([21, 'meshboard: 80 more have not settled']);
});

test('what is waited for is named with since when, and what is missing with why', () => {
  const waiting = {
    module: 'core',
    state: 'building' as const,
    takenBy: null,
    since: SINCE,
    progressAt: SINCE,
    path: ['meshboard', 'board-types', 'core'],
  };
  const missing = { module: 'testkit', because: 'testkit failed at 9c1f0e2', since: SINCE, needsPerson: true };
  expect(says({ settling: [waiting], missing: [missing] })).toEqual([
    'meshboard ← testkit (main_test.go:5, tests only): testkit failed at 9c1f0e2, since 2026-11-29T14:02Z; it needs a person',
    'meshboard ← board-types (board/board.go:7) ← core (types.go:3): core (its build waits for a builder) has not settled since 2026-11-29T14:02Z, last progress 2026-11-29T14:02Z',
  ]);
});

test('cycle, bootstrap, conflict and what does not parse are each a line that says what helps', () => {
  const said = says({
    cycle: ['meshboard', 'board-types', 'meshboard'],
    bootstrap: ['meshboard', 'testkit', 'meshboard'],
    conflicts: [{ name: 'example.com/core', module: 'core' }],
    unparsed: ['a.py:3 invalid syntax'],
  });
  expect(said).toEqual([
    'meshboard ← board-types (board/board.go:7) ← meshboard: a cycle: take one of these imports out',
    'meshboard ← testkit (main_test.go:5, tests only) ← meshboard: a circle that only an import of tests closes',
    'meshboard ← core: core exported example.com/core before this one: rename it in one of the two',
    'meshboard: not parsed: a.py:3 invalid syntax; the edges of before stay in force',
  ]);
});

test('a module that builds on nothing and is in step has no chain', () => {
  expect(whyChains(inStep(), [], new Map())).toEqual([]);
});

/** Facts to compare: a settled module to change by hand, and arbitrary ones for properties. */
import fc from 'fast-check';
import type { BuildFacts, Facts, GraphFacts, InspectionFacts, PlacementFacts, RequestFacts } from '../../src/domain/facts';

export const NOW = '2026-11-29T15:00:00.000Z';
export const A = 'a'.repeat(40);
export const B = 'b'.repeat(40);

export function build(changes: Partial<BuildFacts> = {}): BuildFacts {
  return {
    id: `build-${changes.commit?.[0] ?? 'a'}`,
    commit: A,
    closure: 'closure-a',
    tryNumber: 1,
    verdict: 'fit',
    reason: null,
    answeredAt: '2026-11-29T14:00:00.000Z',
    ...changes,
  };
}

export function inspection(changes: Partial<InspectionFacts> = {}): InspectionFacts {
  return {
    commit: A,
    outcome: 'valid',
    answeredAt: '2026-11-29T13:59:00.000Z',
    problems: [],
    declare: 'auto',
    platform: 'linux-amd64',
    supersede: 'finish',
    ...changes,
  };
}

export function request(changes: Partial<RequestFacts> = {}): RequestFacts {
  return {
    id: 'request-1',
    kind: 'build',
    commit: A,
    closure: changes.kind === 'inspect' ? null : `closure-${changes.commit?.[0] ?? 'a'}`,
    state: 'taken',
    attempt: 1,
    requestedAt: '2026-11-29T14:30:00.000Z',
    takenBy: 'builder-1',
    takenAt: '2026-11-29T14:31:00.000Z',
    step: 'run',
    trouble: null,
    lostAttempts: 0,
    retryAt: null,
    isSuspect: false,
    isStopping: false,
    ...changes,
  };
}

export function placement(node: string, changes: Partial<PlacementFacts> = {}): PlacementFacts {
  return {
    node,
    build: { id: 'build-a', commit: A },
    applied: { buildId: 'build-a', commit: A, at: '2026-11-29T14:05:00.000Z' },
    isSame: false,
    isApplied: true,
    outstandingSince: null,
    waitingOn: null,
    detail: null,
    failing: null,
    awaySince: null,
    blocked: null,
    ...changes,
  };
}

/** Builds on nothing, and its imports are known. */
export function graph(changes: Partial<GraphFacts> = {}): GraphFacts {
  return {
    inputs: [],
    builtInputs: [],
    staleSince: null,
    settling: [],
    missing: [],
    openImport: null,
    cycle: null,
    bootstrap: null,
    conflicts: [],
    unparsed: [],
    ...changes,
  };
}

/** A module in step: commit A fit, declared and applied on two nodes. */
export function inStep(changes: Partial<Facts> = {}): Facts {
  return {
    module: 'meshboard',
    now: NOW,
    version: 7,
    source: { repository: 'file:///m.git', ref: 'refs/heads/main', head: { commit: A, since: '2026-11-29T13:58:00.000Z' }, trouble: null },
    inspection: inspection(),
    requests: [],
    closure: 'closure-a',
    headBuild: build(),
    again: null,
    effective: build(),
    graph: graph(),
    effectiveDeclare: 'auto',
    placements: [placement('alpha'), placement('beta')],
    meshDeclare: 'ask',
    approved: null,
    hold: null,
    builderSeenAt: '2026-11-29T14:59:00.000Z',
    ...changes,
  };
}

const iso = fc.integer({ min: 0, max: 7_200 }).map((secondsAgo) => new Date(Date.parse(NOW) - secondsAgo * 1_000).toISOString());
const commit = fc.constantFrom(A, B, 'c'.repeat(40));
const words = fc.constantFrom('disk is full', 'connection refused', 'exit status 1');
const orNull = <T>(arb: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arb, { nil: null });

const arbBuild: fc.Arbitrary<BuildFacts> = fc.record({
  id: fc.constantFrom('build-a', 'build-b', 'build-c'),
  commit,
  closure: fc.constantFrom('closure-a', 'closure-b'),
  tryNumber: fc.integer({ min: 1, max: 4 }),
  verdict: fc.constantFrom('outstanding', 'fit', 'failed'),
  reason: orNull(words),
  answeredAt: orNull(iso),
});

const arbRequest: fc.Arbitrary<RequestFacts> = fc.record({
  id: fc.uuid(),
  kind: fc.constantFrom('inspect', 'build'),
  commit,
  closure: orNull(fc.constantFrom('closure-a', 'closure-b')),
  state: fc.constantFrom('requested', 'published', 'taken'),
  attempt: fc.integer({ min: 1, max: 9 }),
  requestedAt: iso,
  takenBy: orNull(fc.constant('builder-1')),
  takenAt: orNull(iso),
  step: orNull(fc.constant('test')),
  trouble: orNull(fc.record({ reason: words, since: iso })),
  lostAttempts: fc.integer({ min: 0, max: 5 }),
  retryAt: orNull(iso),
  isSuspect: fc.boolean(),
  isStopping: fc.boolean(),
});

const arbPlacement: fc.Arbitrary<PlacementFacts> = fc.record({
  node: fc.constantFrom('alpha', 'beta', 'gamma'),
  build: orNull(fc.record({ id: fc.constantFrom('build-a', 'build-b'), commit })),
  applied: orNull(fc.record({ buildId: fc.constantFrom('build-a', 'build-b'), commit, at: iso })),
  isSame: fc.boolean(),
  isApplied: fc.boolean(),
  outstandingSince: orNull(iso),
  waitingOn: orNull(fc.constantFrom('send', 'node', 'apply', 'workout')),
  detail: orNull(words),
  failing: orNull(fc.record({ resources: fc.constant(['service/greeter']), count: fc.integer({ min: 1, max: 6 }), since: iso, message: words })),
  awaySince: orNull(iso),
  blocked: orNull(fc.record({ reason: fc.string(), since: iso, needsPerson: fc.boolean() })),
});

const arbInput = fc.record({
  module: fc.constantFrom('core', 'board-types'),
  artifact: fc.constant('go'),
  digest: fc.constantFrom('sha256:1', 'sha256:2'),
  isTest: fc.boolean(),
});

const arbGraph: fc.Arbitrary<GraphFacts> = fc.record({
  inputs: fc.array(arbInput, { maxLength: 3 }),
  builtInputs: fc.array(arbInput, { maxLength: 3 }),
  staleSince: orNull(iso),
  settling: fc.array(
    fc.record({
      module: fc.constantFrom('core', 'board-types'),
      state: fc.constantFrom('inspecting', 'building', 'waiting'),
      takenBy: orNull(fc.constant('builder-1')),
      since: iso,
      progressAt: iso,
      path: fc.constant(['meshboard', 'core']),
    }),
    { maxLength: 2 },
  ),
  missing: fc.array(
    fc.record({ module: fc.constant('core'), because: fc.constant('core has had no fit build yet'), since: iso, needsPerson: fc.boolean() }),
    {
      maxLength: 2,
    },
  ),
  openImport: orNull(
    fc.record({
      name: fc.constant('example.com/core'),
      file: fc.constant('a.go'),
      line: fc.nat(),
      module: fc.constant('core'),
      hasOthers: fc.boolean(),
      progressAt: iso,
    }),
  ),
  cycle: fc.option(fc.constant(['meshboard', 'core', 'meshboard']), { nil: null, freq: 4 }),
  bootstrap: fc.option(fc.constant(['meshboard', 'core', 'meshboard']), { nil: null, freq: 4 }),
  conflicts: fc.array(fc.record({ name: fc.constant('example.com/core'), module: fc.constant('core') }), { maxLength: 1 }),
  unparsed: fc.array(fc.constant('a.py:3 invalid syntax'), { maxLength: 1 }),
});

/** Every combination a snapshot can hold, sensible or not: `compare` is total. */
const arbAnything: fc.Arbitrary<Facts> = fc.record({
  module: fc.constant('meshboard'),
  now: fc.constant(NOW),
  version: fc.nat(),
  source: fc.record({
    repository: fc.constant('file:///m.git'),
    ref: fc.constant('refs/heads/main'),
    head: orNull(fc.record({ commit, since: iso })),
    trouble: orNull(fc.record({ kind: fc.constantFrom('unreadable', 'absent'), reason: words, since: iso })),
  }),
  inspection: orNull(
    fc.record({
      commit,
      outcome: fc.constantFrom('valid', 'invalid'),
      answeredAt: iso,
      problems: fc.array(words, { maxLength: 2 }),
      declare: orNull(fc.constantFrom('auto', 'ask')),
      platform: fc.constant('linux-amd64'),
      supersede: fc.constantFrom('finish', 'cancel'),
    }),
  ),
  requests: fc.array(arbRequest, { maxLength: 3 }),
  closure: orNull(fc.constantFrom('closure-a', 'closure-b')),
  headBuild: orNull(arbBuild),
  again: orNull(fc.record({ by: fc.constant('ada'), at: iso })),
  effective: orNull(arbBuild),
  graph: arbGraph,
  effectiveDeclare: orNull(fc.constantFrom('auto', 'ask')),
  placements: fc.uniqueArray(arbPlacement, { selector: (p) => p.node, maxLength: 3 }),
  meshDeclare: fc.constantFrom('auto', 'ask'),
  approved: orNull(fc.record({ buildId: fc.constantFrom('build-a', 'build-b'), by: fc.constant('ada') })),
  hold: orNull(fc.record({ by: fc.constant('ada'), why: fc.constant('fair week'), at: iso, buildId: orNull(fc.constant('build-a')) })),
  builderSeenAt: orNull(iso),
});

/** Half of them anything, half of them a module in step with a few facts changed, where the rare answers lie. */
export const arbFacts: fc.Arbitrary<Facts> = fc.oneof(
  arbAnything,
  fc.tuple(arbAnything, fc.subarray(Object.keys(inStep()) as Array<keyof Facts>, { maxLength: 3 })).map(([other, keys]) => ({
    ...inStep(),
    ...Object.fromEntries(keys.map((key) => [key, other[key]])),
  })),
);

import { whyOf } from '../../src/api/why';
import { whyChains } from '../../src/api/whyChain';
import { compare } from '../../src/domain/comparison';
import type { BuildFacts, Facts, GraphFacts } from '../../src/domain/facts';
import { defaultTimes } from '../../src/domain/times';
import { build, graph, inStep, inspection } from '../support/facts';

const since = '2026-11-29T14:50:00.000Z';
const NOTHING = { remedy: null, comparedAt: null, chain: [], unlike: null, unmade: [], unread: null };

/** What a person reads below the result line, as it stands on the screen. */
function read(facts: Facts): string[] {
  const comparison = compare(facts, defaultTimes);
  const { reason, chain, facts: sentences } = whyOf(facts, comparison, { ...NOTHING, chain: whyChains(facts, [], new Map()) });
  return [reason, ...chain.map(({ says }) => says), ...sentences];
}
const stale = (changes: Partial<GraphFacts>): Facts =>
  inStep({ headBuild: null, closure: 'closure-a2', graph: graph({ staleSince: since, ...changes }) });
const times = (word: string, facts: Facts): string[] => read(facts).filter((text) => text.includes(word));

test('what settles or is missing is told once, in its chain, and so is what does not parse', () => {
  const core = { module: 'core', state: 'building' as const, takenBy: 'builder-1', since, progressAt: since, path: ['meshboard', 'types', 'core'] };
  const others = [core, { ...core, module: 'lib', path: ['meshboard', 'lib'] }];
  expect(times('lib (building on builder-1)', stale({ settling: others }))).toHaveLength(1);
  const missing = { module: 'core', because: 'core has had no fit build yet', since, needsPerson: false };
  expect(times('core has had no fit build yet', stale({ missing: [{ ...missing, module: 'a' }, missing], settling: [core] })).slice(1)).toEqual([
    expect.stringContaining('meshboard ← a: '),
    'meshboard ← core: core has had no fit build yet (building on builder-1, last progress 2026-11-29T14:50Z), since 2026-11-29T14:50Z',
  ]);
  expect(times('core (building on builder-1) has not settled', stale({ missing: [missing], settling: [core] }))).toEqual([]);
  expect(times('invalid syntax', stale({ unparsed: ['a.py:3 invalid syntax'] }))).toHaveLength(1);
  expect(times('meshboard → core → meshboard', stale({ cycle: ['meshboard', 'core', 'meshboard'] }))).toHaveLength(1);
  expect(times('2026-11-29T14:50Z', stale({}))).toEqual(['built: aaaaaaa not yet with these inputs, stale since 2026-11-29T14:50Z']);
});

test('before the first fit build the head’s manifest says whether it declares itself, and the mesh where that is silent', () => {
  const facts = inStep({ effective: null, effectiveDeclare: null, meshDeclare: 'ask' });
  const said = (one: Facts): string[] => whyOf(one, compare(one, defaultTimes), NOTHING).facts.filter((fact) => fact.startsWith('declare: '));
  expect(said(facts)).toEqual(['declare: auto, said by its manifest']);
  expect(said({ ...facts, inspection: inspection({ declare: null }) })).toEqual(['declare: ask, said by the mesh']);
  expect(said({ ...facts, effective: build(), inspection: inspection({ declare: 'auto' }) })).toEqual(['declare: ask, said by the mesh']);
});

test('what has not been read that may export an import is told with its progress, and the import once', () => {
  const openImport = { name: 'x.org/core', file: 'a.go', line: 3, module: 'core', hasOthers: true, progressAt: since };
  const facts = stale({ openImport });
  expect(times('not inspected yet', { ...facts, now: since })).toEqual([
    'not inspected yet: core and others, which may export x.org/core, last progress 2026-11-29T14:50Z',
  ]);
  expect(times('a.go:3', { ...facts, now: since })).toHaveLength(1);
});

test('an import that may be of modules which never could be read names those', () => {
  const modules = ['bad', 'dead', 'gone', 'lost'].map((module, at) => ({ module, is: at === 0 ? ('invalid' as const) : ('unreadable' as const) }));
  const unread = { name: 'x.org/bad', file: 'main.go', line: 3, modules };
  const facts = inStep({ headBuild: { ...(inStep().headBuild as BuildFacts), verdict: 'failed', reason: 'exit status 1' } });
  expect(whyOf(facts, compare(facts, defaultTimes), { ...NOTHING, unread }).facts).toContain(
    'not known: nobody exports x.org/bad (main.go:3); bad (invalid), dead (unreadable), gone (unreadable) and 1 more may, and could never be read',
  );
});

test('what stands in the reason is no fact again, and any other cause is', () => {
  const failed = { ...(inStep().headBuild as BuildFacts), verdict: 'failed' as const, reason: '1 of 14 tests' };
  const hold = { by: 'ada', why: 'fair week', at: since, buildId: null };
  expect(times('1 of 14 tests', inStep({ headBuild: failed }))).toHaveLength(1);
  expect(times('fair week', inStep({ hold }))).toEqual(['held by ada: fair week']);
  expect(times('fair week', inStep({ hold, headBuild: failed }))).toEqual(['held: by ada since 2026-11-29T14:50Z: fair week']);
  const source = { ...inStep().source, trouble: { kind: 'unreadable' as const, reason: 'connection refused', since } };
  expect(times('connection refused', inStep({ source }))).toEqual(['connection refused']);
});

test('why says that the effective build is not reproducible, and names the files where it was built twice', () => {
  const facts = inStep();
  const unlike = (files: readonly string[] | null) => whyOf(facts, compare(facts, defaultTimes), { ...NOTHING, unlike: files }).facts;
  expect(unlike(null).filter((fact) => fact.startsWith('not reproducible'))).toEqual([]);
  expect(unlike([])).toContainEqual(
    expect.stringMatching(/^not reproducible: \w{7} was built again .*tally build --check meshboard names the files$/),
  );
  expect(unlike(['out a.js', 'out b.js', 'out c.js', 'out d.js'])).toContainEqual(
    expect.stringMatching(/^not reproducible: .* and out a\.js, out b\.js, out c\.js and 1 more came out otherwise$/),
  );
});

test('why says at what a provider fails that is waited for', () => {
  const facts = inStep();
  const unmade = {
    instance: 'meshboard-db',
    provider: 'postgres',
    providerNode: 'alpha',
    nodes: ['beta', 'gamma'],
    resource: 'action/make-meshboard-db',
    message: 'exit status 2',
    reportedAt: since,
  };
  expect(whyOf(facts, compare(facts, defaultTimes), { ...NOTHING, unmade: [unmade] }).facts.at(-1)).toBe(
    'not made: postgres on alpha failed to make meshboard-db for beta, gamma, as reported at 2026-11-29T14:50Z: action/make-meshboard-db · exit status 2 (tally node show alpha)',
  );
});

import { whyOf } from '../../src/api/why';
import { compare } from '../../src/domain/comparison';
import type { GraphFacts } from '../../src/domain/facts';
import { defaultTimes } from '../../src/domain/times';
import { graph, inStep } from '../support/facts';

const since = '2026-11-29T14:50:00.000Z';
const NOTHING = { remedy: null, comparedAt: null, chain: [], unlike: null, unmade: [] };
const said = (changes: Partial<GraphFacts>): readonly string[] => {
  const facts = inStep({ headBuild: null, closure: 'closure-a2', graph: graph({ staleSince: since, ...changes }) });
  return whyOf(facts, compare(facts, defaultTimes), NOTHING).facts;
};

test('why names what settles, by which way it is reached, and when it last got on', () => {
  const core = { module: 'core', state: 'building' as const, takenBy: 'builder-1', since, progressAt: '2026-11-29T14:59:00.000Z' };
  expect(said({ settling: [{ ...core, path: ['meshboard', 'types', 'core'] }] })).toContain(
    'settling: core (building on builder-1) since 2026-11-29T14:50Z, last progress 2026-11-29T14:59Z, reached by meshboard → types → core',
  );
});

test('why names what is missing, cycles, names that were exported before, and edges of before', () => {
  const facts = said({
    missing: [{ module: 'core', because: 'core has had no fit build yet', since, needsPerson: false }],
    cycle: ['meshboard', 'core', 'meshboard'],
    bootstrap: ['meshboard', 'core', 'meshboard'],
    conflicts: [{ name: 'example.com/core', module: 'core' }],
    unparsed: ['a.py:3 invalid syntax'],
  });
  expect(facts).toEqual(
    expect.arrayContaining([
      'missing: core has had no fit build yet, waited for since 2026-11-29T14:50Z',
      'cycle: meshboard → core → meshboard',
      "bootstrap cycle: meshboard → core → meshboard, each of which waits for the next one's first fit build",
      'exports: example.com/core is exported by core as well, and was before',
      'edges: those of before stay in force, a.py:3 invalid syntax',
    ]),
  );
});

test('a hundred inputs that settle are counted, not listed', () => {
  const one = (n: number) => ({ module: `m${n}`, state: 'waiting' as const, takenBy: null, since, progressAt: since, path: ['meshboard', `m${n}`] });
  const facts = said({ settling: Array.from({ length: 100 }, (_, n) => one(n)) });
  expect(facts.filter((sentence) => sentence.startsWith('settling: '))).toHaveLength(10);
  expect(facts).toContain('… and 90 more like that');
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

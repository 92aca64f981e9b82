import { isOutdated, staleReason } from '../../src/domain/currency';
import type { Facts, InputFacts } from '../../src/domain/facts';
import { A, B, build, graph, inStep, request } from '../support/facts';

const of = (module: string, digit: string, changes: Partial<InputFacts> = {}): InputFacts => ({
  module,
  artifact: 'go',
  digest: `sha256:${digit.repeat(64)}`,
  isTest: false,
  ...changes,
});
const reason = (builtInputs: InputFacts[], inputs: InputFacts[], changes: Partial<Facts> = {}): string =>
  staleReason(inStep({ headBuild: null, graph: graph({ builtInputs, inputs }), ...changes }));
const headAt = (commit: string): Partial<Facts> => ({ source: { ...inStep().source, head: { commit, since: '2026-11-29T14:00:00.000Z' } } });

describe('why a head is stale', () => {
  test('its source moved', () => {
    expect(reason([], [], headAt(B))).toBe('source moved to bbbbbbb, built from aaaaaaa');
    expect(reason([], [], { ...headAt(B), effective: null })).toBe('bbbbbbb has not been built and nothing was before');
  });

  test('an input moved, and both digests are named', () => {
    expect(reason([of('core', '1'), of('types', '5')], [of('core', '2'), of('types', '5')])).toBe('core moved from 1111111 to 2222222');
  });

  test('an input that only tests use is said to be one', () => {
    expect(reason([of('core', '1', { isTest: true })], [of('core', '2', { isTest: true })])).toBe('core moved from 1111111 to 2222222 (tests only)');
  });

  test('an import now resolves to a module, or no longer does', () => {
    expect(reason([], [of('core', '1')])).toBe('an import now resolves to core');
    expect(reason([of('core', '1')], [of('types', '1')])).toBe('no import resolves to core any more, an import now resolves to types');
  });

  test('another artifact of the same module', () => {
    expect(reason([of('core', '1')], [of('core', '1'), of('core', '3', { artifact: 'npm' })])).toBe('npm of core is used now');
    expect(reason([of('core', '1'), of('core', '3', { artifact: 'npm' })], [of('core', '1')])).toBe('npm of core is not used any more');
  });

  test('many are counted', () => {
    const modules = ['a', 'b', 'c', 'd', 'e'];
    const [was, is] = [modules.map((name) => of(name, '1')), modules.map((name) => of(name, '2'))];
    expect(reason(was, is)).toMatch(/^a moved .*, b moved .*, c moved from 1111111 to 2222222 and 2 more$/);
  });

  test('a head that was built and failed, and whose input moved, is stale because of the input', () => {
    expect(reason([of('core', '1')], [of('core', '2')], { ...headAt(B), effective: build({ commit: A }) })).toBe(
      'core moved from 1111111 to 2222222',
    );
  });
});

describe('a request is outdated', () => {
  const facts = inStep({ closure: 'closure-a2' });
  test('when it is of another head, or a build of another closure', () => {
    expect(isOutdated(request({ commit: B }), facts)).toBe(true);
    expect(isOutdated(request({ closure: 'closure-a1' }), facts)).toBe(true);
    expect(isOutdated(request({ closure: 'closure-a2' }), facts)).toBe(false);
  });

  test('not when it is an inspection of the head, or the closure is not known', () => {
    expect(isOutdated(request({ kind: 'inspect', closure: null }), facts)).toBe(false);
    expect(isOutdated(request({ closure: 'closure-a1' }), inStep({ closure: null }))).toBe(false);
  });
});

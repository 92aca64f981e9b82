import { compare } from '../../src/domain/comparison';
import type { Comparison, Facts, PlacementFacts } from '../../src/domain/facts';
import { defaultTimes } from '../../src/domain/times';
import { B, build, inStep, inspection, NOW, placement } from '../support/facts';

const head = build({ id: 'build-b', commit: B, closure: 'closure-b' });
/** A second commit that is fit, and declared nowhere yet. */
const next = (placements: PlacementFacts[], changes: Partial<Facts> = {}): Comparison =>
  compare(
    inStep({
      source: { ...inStep().source, head: { commit: B, since: NOW } },
      inspection: inspection({ commit: B }),
      closure: 'closure-b',
      headBuild: head,
      effective: head,
      placements,
      ...changes,
    }),
    defaultTimes,
  );

const since = '2026-11-29T14:50:00.000Z';
const refused = { reason: 'meshboard and kiosk both claim port/80', since, needsPerson: true };
const waits = { reason: 'waits for postgres on alpha to make meshboard-db', since, needsPerson: false };

describe('a fit build that cannot be where it is placed', () => {
  test('is declared nowhere by itself: it needs a person, and the line says why', () => {
    const found = next([placement('alpha', { blocked: refused })]);
    expect(found).toMatchObject({ next: { kind: 'wait' }, situation: 'waiting', needsPerson: true, inStep: false, since });
    expect(found.reason).toBe('alpha is not declared bbbbbbb: meshboard and kiosk both claim port/80');
    expect(found.line).toContain('alpha is not declared: meshboard and kiosk both claim port/80');
  });

  test('is declared on the other nodes all the same', () => {
    expect(next([placement('alpha', { blocked: refused }), placement('beta')]).next).toMatchObject({ kind: 'declare', nodes: ['beta'] });
  });

  test('that waits for something to be made needs nobody, until that has lasted an hour', () => {
    const found = next([placement('alpha', { blocked: waits })]);
    expect(found).toMatchObject({ situation: 'waiting', needsPerson: false, until: '2026-11-29T15:50:00.000Z' });
    const old = { ...waits, since: '2026-11-29T14:00:00.000Z' };
    expect(next([placement('alpha', { blocked: old })], { now: '2026-11-29T15:00:00.000Z' })).toMatchObject({ needsPerson: true });
  });

  test('comes before what is being applied only where a person is needed', () => {
    const applying = placement('beta', { build: { id: 'build-b', commit: B }, isApplied: false, outstandingSince: since, waitingOn: 'apply' });
    expect(next([placement('alpha', { blocked: waits }), applying])).toMatchObject({ next: { kind: 'track' }, needsPerson: false });
    expect(next([placement('alpha', { blocked: refused }), applying])).toMatchObject({ next: { kind: 'wait' }, needsPerson: true });
  });

  test('is a held module’s own business later', () => {
    expect(next([placement('alpha', { blocked: refused })], { hold: { by: 'ada', why: 'fair', at: since, buildId: null } })).toMatchObject({
      situation: 'held',
    });
  });

  test('where nothing is effective, is not in step either', () => {
    const bare = placement('alpha', { build: null, applied: null, isApplied: false, blocked: waits });
    expect(compare(inStep({ effective: null, placements: [bare] }), defaultTimes)).toMatchObject({ situation: 'waiting', inStep: false });
  });
});

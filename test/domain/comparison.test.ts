import fc from 'fast-check';
import { compare } from '../../src/domain/comparison';
import type { Comparison, Facts } from '../../src/domain/facts';
import { defaultTimes } from '../../src/domain/times';
import { A, arbFacts, B, build, inStep, inspection, NOW, placement, request } from '../support/facts';

const of = (changes: Partial<Facts> = {}): Comparison => compare(inStep(changes), defaultTimes);
const moved = (changes: Partial<Facts> = {}): Comparison =>
  of({
    source: { ...inStep().source, head: { commit: B, since: NOW } },
    inspection: inspection({ commit: B }),
    closure: 'closure-b',
    headBuild: null,
    ...changes,
  });

describe('what is next', () => {
  test('nothing, when source, built, declared and applied agree', () => {
    expect(of()).toMatchObject({ next: { kind: 'nothing' }, situation: 'in step', inStep: true, needsPerson: false });
  });

  test('nothing, when the head is fit and the module is placed nowhere', () => {
    expect(of({ placements: [] })).toMatchObject({ next: { kind: 'nothing' }, inStep: true });
  });

  test('the first reading is waited for, and that is said', () => {
    const found = of({ source: { ...inStep().source, head: null }, inspection: null, closure: null, headBuild: null, effective: null });
    expect(found).toMatchObject({ next: { kind: 'wait', on: 'the first reading of its source' }, inStep: false });
  });

  test('a head that has not been inspected is inspected', () => {
    expect(moved({ inspection: null, closure: null }).next).toEqual({ kind: 'inspect', commit: B, requestId: null });
  });

  test('an inspection of an older commit is no inspection of the head', () => {
    expect(moved({ inspection: inspection({ commit: A }) }).next).toMatchObject({ kind: 'inspect', commit: B });
  });

  test('a head that differs from what was built is built, and the reason names both', () => {
    const found = moved();
    expect(found.next).toEqual({ kind: 'build', commit: B, closure: 'closure-b', requestId: null });
    expect(found.reason).toBe('source moved to bbbbbbb, built from aaaaaaa');
  });

  test('an open build of the head is joined, not asked for again', () => {
    const found = moved({ requests: [request({ id: 'r9', commit: B })] });
    expect(found.next).toMatchObject({ kind: 'build', requestId: 'r9' });
    expect(found.situation).toBe('building');
    expect(found.line).toContain('building on builder-1 since 2026-11-29T14:31Z');
  });

  test('a request that nobody takes says since when, and when a builder was last seen', () => {
    const found = moved({ requests: [request({ commit: B, state: 'published', takenBy: null, takenAt: null })] });
    expect(found).toMatchObject({
      situation: 'waiting',
      verdict: 'outstanding',
      reason: 'no builder has taken it since 2026-11-29T14:30Z; last builder seen 2026-11-29T14:59Z',
    });
  });

  test('an environmental failure leaves the verdict outstanding, with the reason and the time', () => {
    const found = moved({
      requests: [request({ commit: B, state: 'requested', trouble: { reason: 'the registry did not answer', since: '2026-11-29T14:50:00.000Z' } })],
    });
    expect(found).toMatchObject({ verdict: 'outstanding', situation: 'waiting', since: '2026-11-29T14:50:00.000Z', needsPerson: false });
    expect(found.line).toContain('outstanding since 2026-11-29T14:50Z: the registry did not answer');
  });

  test('an environmental failure for an hour needs a person', () => {
    const found = moved({
      requests: [request({ commit: B, state: 'requested', trouble: { reason: 'the registry did not answer', since: '2026-11-29T13:59:00.000Z' } })],
    });
    expect(found).toMatchObject({ situation: 'stuck', needsPerson: true, verdict: 'outstanding' });
  });

  test('a suspect build is still outstanding and needs a person', () => {
    const found = moved({
      requests: [request({ commit: B, trouble: { reason: 'the builder was lost', since: NOW }, lostAttempts: 3, isSuspect: true })],
    });
    expect(found).toMatchObject({ situation: 'suspect', needsPerson: true, verdict: 'outstanding' });
  });

  test('a failed head declares nothing; what is declared stays and the line says so', () => {
    const found = moved({ headBuild: build({ id: 'build-b', commit: B, closure: 'closure-b', verdict: 'failed', reason: '1 of 14 tests' }) });
    expect(found).toMatchObject({ next: { kind: 'nothing' }, situation: 'failed', needsPerson: true, verdict: 'failed' });
    expect(found.line).toBe(
      'source bbbbbbb · failed at bbbbbbb since 2026-11-29T14:00Z · 1 of 14 tests · aaaaaaa stays declared · declared on 2 · applied on 2',
    );
  });

  test('a failed closure is not built again until an operator says so', () => {
    const failed = build({ id: 'build-b', commit: B, closure: 'closure-b', verdict: 'failed' });
    expect(moved({ headBuild: failed }).next.kind).toBe('nothing');
    const again = moved({ headBuild: failed, again: { by: 'ada', at: NOW } });
    expect(again).toMatchObject({
      next: { kind: 'build', commit: B, requestId: null },
      verdict: 'failed',
      reason: 'ada asked for another build of bbbbbbb',
    });
  });

  test('an invalid manifest is an outcome of its own: nothing is built, what is declared stays', () => {
    const found = moved({
      inspection: inspection({ commit: B, outcome: 'invalid', problems: ['module.yaml:3 artefacts: unknown key; did you mean artifacts?'] }),
      closure: null,
    });
    expect(found).toMatchObject({ next: { kind: 'nothing' }, situation: 'invalid', verdict: 'outstanding', needsPerson: true });
    expect(found.line).toContain('invalid: module.yaml:3 artefacts');
    expect(found.line).toContain('aaaaaaa stays declared');
  });

  test('a fit build is declared where the module or else the mesh says auto', () => {
    const fit = build({ id: 'build-b', commit: B, closure: 'closure-b' });
    const declared = moved({ headBuild: fit, effective: fit });
    expect(declared.next).toEqual({ kind: 'declare', buildId: 'build-b', commit: B, nodes: ['alpha', 'beta'] });
    expect(moved({ headBuild: fit, effective: fit, effectiveDeclare: null }).next).toMatchObject({ kind: 'ask', nodes: 2 });
    expect(moved({ headBuild: fit, effective: fit, effectiveDeclare: null, meshDeclare: 'auto' }).next.kind).toBe('declare');
    expect(moved({ headBuild: fit, effective: fit, effectiveDeclare: 'ask', meshDeclare: 'auto' }).next.kind).toBe('ask');
    expect(moved({ headBuild: fit, effective: fit, effectiveDeclare: 'ask', approved: { buildId: 'build-b', by: 'ada' } }).next.kind).toBe('declare');
  });

  test('what is declared of another build than the effective one is said', () => {
    const hold = { by: 'ada', why: 'back', at: NOW, buildId: 'build-z' };
    const older = placement('alpha', { build: { id: 'build-z', commit: B } });
    expect(compare(inStep({ hold, placements: [older] }), defaultTimes).line).toContain('declared on 1 (bbbbbbb) · applied on 1');
    expect(compare(inStep({ hold, placements: [older, placement('beta')] }), defaultTimes).line).toContain(
      'declared on 2 (1 bbbbbbb) · applied on 2',
    );
  });

  test('a held module whose nodes have not applied what is declared waits for them: a rollback is not done when it was asked for', () => {
    const owed = placement('alpha', { isApplied: false, outstandingSince: NOW, waitingOn: 'send' });
    const hold = { by: 'ada', why: 'the fair opens', at: NOW, buildId: 'build-a' };
    expect(compare(inStep({ hold, placements: [owed] }), defaultTimes)).toMatchObject({
      next: { kind: 'track' },
      situation: 'applying',
      inStep: false,
    });
    expect(compare(inStep({ hold }), defaultTimes)).toMatchObject({ next: { kind: 'nothing' }, situation: 'held' });
  });

  test('a held module still builds and declares nothing', () => {
    const hold = { by: 'ada', why: 'fair week', at: NOW, buildId: null };
    const fit = build({ id: 'build-b', commit: B, closure: 'closure-b' });
    expect(moved({ hold }).next.kind).toBe('build');
    expect(moved({ hold, headBuild: fit, effective: fit })).toMatchObject({
      next: { kind: 'nothing' },
      situation: 'held',
      needsPerson: false,
      inStep: false,
    });
  });

  test('an unreadable source keeps the head it had and says since when', () => {
    const trouble = { kind: 'unreadable' as const, reason: 'connection refused', since: '2026-11-29T14:02:00.000Z' };
    const found = of({ source: { ...inStep().source, trouble } });
    expect(found).toMatchObject({ next: { kind: 'nothing' }, situation: 'unreadable', needsPerson: false, inStep: false });
    expect(found.line).toContain('source aaaaaaa (unreadable: connection refused, since 2026-11-29T14:02Z)');
    expect(of({ source: { ...inStep().source, trouble: { ...trouble, since: '2026-11-29T13:59:00.000Z' } } }).needsPerson).toBe(true);
  });

  test('a source that was never once readable needs a person at once: likely it is misnamed', () => {
    const trouble = { kind: 'unreadable' as const, reason: 'repository not found', since: '2026-11-29T14:59:00.000Z' };
    const found = of({ source: { ...inStep().source, head: null, trouble }, inspection: null, closure: null, headBuild: null, effective: null });
    expect(found).toMatchObject({ situation: 'unreadable', needsPerson: true, reason: 'repository not found' });
  });

  test('outstanding nodes are named with since; a node that is off is never stuck', () => {
    const off = placement('beta', {
      isApplied: false,
      outstandingSince: '2026-11-28T14:02:00.000Z',
      waitingOn: 'node',
      awaySince: '2026-11-28T14:01:00.000Z',
    });
    const found = of({ placements: [placement('alpha'), off] });
    expect(found).toMatchObject({ next: { kind: 'track', nodes: 1 }, situation: 'applying', needsPerson: false });
    expect(found.line).toContain('declared on 2 · applied on 1, 1 outstanding (beta away since 2026-11-28T14:01Z)');
  });

  test.each([
    ['three reports on the same resources', { count: 3, since: NOW }],
    ['one failure for an hour', { count: 1, since: '2026-11-29T14:00:00.000Z' }],
  ])('stuck: %s', (_why, { count, since }) => {
    const failing = { resources: ['service/greeter'], count, since, message: 'exit status 203' };
    const found = of({ placements: [placement('gamma', { isApplied: false, outstandingSince: since, failing })] });
    expect(found).toMatchObject({ situation: 'stuck', needsPerson: true, stuckOn: ['gamma'], reason: 'gamma: service/greeter · exit status 203' });
  });

  test('two reports within the hour are not stuck yet, and the hour is looked at again', () => {
    const failing = { resources: ['service/greeter'], count: 2, since: '2026-11-29T14:59:50.000Z', message: 'exit status 203' };
    const found = of({ placements: [placement('gamma', { isApplied: false, outstandingSince: failing.since, failing, awaySince: NOW })] });
    expect(found).toMatchObject({ situation: 'applying', stuckOn: [], until: '2026-11-29T15:59:50.000Z' });
  });

  test('a new head cancels what has not started, and what runs only where the module says so', () => {
    const waiting = request({ id: 'old', state: 'published' });
    const running = request({ id: 'run', state: 'taken' });
    expect(moved({ requests: [waiting, running] }).cancel).toEqual(['old']);
    expect(moved({ requests: [waiting, running], inspection: inspection({ commit: B, supersede: 'cancel' }) }).cancel).toEqual(['old', 'run']);
    expect(moved({ requests: [{ ...running, isStopping: true }], inspection: inspection({ commit: B, supersede: 'cancel' }) }).cancel).toEqual([]);
  });

  test('a rebuilt closure says which try answered', () => {
    expect(of({ headBuild: build({ tryNumber: 2 }) }).line).toContain('fit, 2nd try');
  });

  test('the effective build is declared on a new node while the head fails', () => {
    const found = moved({
      headBuild: build({ id: 'build-b', commit: B, closure: 'closure-b', verdict: 'failed' }),
      placements: [placement('alpha'), placement('beta', { build: null, isApplied: false, applied: null })],
    });
    expect(found).toMatchObject({ next: { kind: 'declare', buildId: 'build-a', nodes: ['beta'] }, situation: 'failed', needsPerson: true });
  });
});

describe('properties', () => {
  test('compare is total and deterministic', () => {
    fc.assert(
      fc.property(arbFacts, (facts) => {
        const frozen = JSON.stringify(facts);
        expect(compare(facts, defaultTimes)).toEqual(compare(JSON.parse(frozen), defaultTimes));
        expect(JSON.stringify(facts)).toBe(frozen);
      }),
      { numRuns: 2_000 },
    );
  });

  test('nothing is declared whose build is not fit', () => {
    fc.assert(
      fc.property(arbFacts, (facts) => {
        const { next } = compare(facts, defaultTimes);
        if (next.kind !== 'declare' && next.kind !== 'ask') return;
        expect(facts.effective).toMatchObject({ id: next.buildId, verdict: 'fit' });
        expect(facts.hold).toBeNull();
      }),
      { numRuns: 4_000 },
    );
  });

  test('next is nothing only when in step or with a reason that stands', () => {
    fc.assert(
      fc.property(arbFacts, (facts) => {
        const found = compare(facts, defaultTimes);
        expect(found.reason).not.toBe('');
        if (found.next.kind !== 'nothing') return;
        expect(['in step', 'held', 'failed', 'invalid', 'cycle', 'unreadable', 'stuck']).toContain(found.situation);
        if (found.situation !== 'in step') return;
        expect(facts.source.trouble).toBeNull();
        expect(facts.headBuild?.verdict).toBe('fit');
        for (const node of facts.placements) expect(node).toMatchObject({ isApplied: true, build: { id: facts.effective?.id } });
      }),
      { numRuns: 4_000 },
    );
  });

  test('everything that waits on something says since when', () => {
    fc.assert(
      fc.property(arbFacts, (facts) => {
        const found = compare(facts, defaultTimes);
        const isOwed = facts.placements.filter((node) => node.build !== null && !node.isApplied).every((node) => node.outstandingSince !== null);
        if (found.situation === 'waiting' || found.situation === 'held' || found.situation === 'unreadable') expect(found.since).not.toBeNull();
        if (found.situation === 'applying' && isOwed) expect(found.since).not.toBeNull();
      }),
      { numRuns: 4_000 },
    );
  });

  test('no environmental trouble changes a verdict', () => {
    fc.assert(
      fc.property(arbFacts, (facts) => {
        const calm = { ...facts, requests: facts.requests.map((one) => ({ ...one, trouble: null, lostAttempts: 0, isSuspect: false })) };
        expect(compare(facts, defaultTimes).verdict).toBe(compare(calm, defaultTimes).verdict);
      }),
      { numRuns: 2_000 },
    );
  });

  test('a deadline lies in the future', () => {
    fc.assert(
      fc.property(arbFacts, (facts) => {
        const { until } = compare(facts, defaultTimes);
        if (until !== null) expect(Date.parse(until)).toBeGreaterThan(Date.parse(NOW));
      }),
      { numRuns: 2_000 },
    );
  });
});

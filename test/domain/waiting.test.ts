import fc from 'fast-check';
import { compare } from '../../src/domain/comparison';
import type { Comparison, Facts, GraphFacts, OpenImport, SettlingInput } from '../../src/domain/facts';
import { defaultTimes } from '../../src/domain/times';
import { A, arbFacts, B, build, graph, inStep, inspection, NOW, request } from '../support/facts';

/** So many minutes ago. */
const ago = (minutes: number): string => new Date(Date.parse(NOW) - minutes * 60_000).toISOString();
const inMinutes = (minutes: number): string => ago(-minutes);

const settling = (module: string, changes: Partial<SettlingInput> = {}): SettlingInput => ({
  module,
  state: 'building',
  takenBy: 'builder-1',
  since: ago(10),
  progressAt: ago(1),
  path: ['meshboard', module],
  ...changes,
});

/** Built from A once; now an input has moved, so that the head's closure has no verdict. */
const stale = (given: Partial<GraphFacts> = {}, changes: Partial<Facts> = {}): Comparison =>
  compare(
    inStep({
      closure: 'closure-a2',
      headBuild: null,
      graph: graph({
        builtInputs: [{ module: 'core', artifact: 'go', digest: `sha256:${'1'.repeat(64)}`, isTest: false }],
        inputs: [{ module: 'core', artifact: 'go', digest: `sha256:${'2'.repeat(64)}`, isTest: false }],
        staleSince: ago(10),
        ...given,
      }),
      ...changes,
    }),
    defaultTimes,
  );

describe('waiting for inputs to settle', () => {
  test('a stale module with nothing to wait for is built, and the reason names what moved', () => {
    const found = stale();
    expect(found).toMatchObject({ next: { kind: 'build', closure: 'closure-a2', requestId: null }, situation: 'building', needsPerson: false });
    expect(found.reason).toBe('core moved from 1111111 to 2222222');
  });

  test('one side of a diamond that is built is waited for, by name, builder and since', () => {
    const found = stale({ settling: [settling('right')] });
    expect(found).toMatchObject({ next: { kind: 'wait', on: 'right to settle' }, situation: 'waiting', since: ago(10), needsPerson: false });
    expect(found.line).toContain('waiting for right since 2026-11-29T14:50Z');
    expect(found.reason).toBe('core moved from 1111111 to 2222222; waits for right to settle');
  });

  test('with several to wait for, what works is named before what waits itself', () => {
    const found = stale({
      settling: [settling('left', { state: 'waiting', takenBy: null }), settling('right', { state: 'inspecting', takenBy: null })],
    });
    expect(found.line).toContain('waiting for right and 1 more since');
    expect(found.next).toEqual({ kind: 'wait', on: 'right and 1 more to settle' });
  });

  test('an import that nobody exports is waited on while there is code that has not been read, and is of outside after', () => {
    const openImport: OpenImport = { name: 'x.org/core/p', file: 'a.go', line: 3, module: 'core', hasOthers: true, progressAt: ago(1) };
    const found = stale({ openImport });
    expect(found).toMatchObject({
      next: { kind: 'wait', on: 'core to be inspected' },
      situation: 'waiting',
      since: ago(10),
      needsPerson: false,
    });
    expect(found.line).toContain('waiting for core (not inspected yet) since 2026-11-29T14:50Z');
    expect(found.reason).toContain('; waits for core to be inspected, since nobody exports x.org/core/p (a.go:3) yet');
    expect(found.until).toBe(inMinutes(14));
    expect(stale({ openImport: null }).next.kind).toBe('build');
  });

  test('it is not waited on for ever: not without progress, and not past the cap', () => {
    const openImport: OpenImport = { name: 'x.org/core/p', file: 'a.go', line: 3, module: 'core', hasOthers: false, progressAt: ago(16) };
    const goesOn = 'goes on without core, not inspected yet, which may export x.org/core/p';
    const patient = stale({ openImport });
    expect(patient.next.kind).toBe('build');
    expect(patient.reason).toContain(goesOn);
    const capped = stale({ openImport: { ...openImport, progressAt: ago(1) }, staleSince: ago(60) });
    expect(capped.next.kind).toBe('build');
    expect(capped.reason).toContain(goesOn);
  });

  test('a side that failed, was cut off or is held is not settling: nothing waits for it', () => {
    expect(stale({ settling: [] }).next.kind).toBe('build');
  });

  test('delayed within patience: waited for, and looked at again when patience is over', () => {
    const found = stale({ settling: [settling('right', { progressAt: ago(14) })] });
    expect(found).toMatchObject({ next: { kind: 'wait' }, until: inMinutes(1) });
  });

  test('no progress for as long as patience: it goes on without, and says so', () => {
    const found = stale({ settling: [settling('right', { progressAt: ago(15) })] });
    expect(found.next.kind).toBe('build');
    expect(found.reason).toContain('goes on without right, no progress since 2026-11-29T14:45Z');
  });

  test('one that gets on is waited for beside one that does not', () => {
    const found = stale({ settling: [settling('left', { progressAt: ago(20) }), settling('right')] });
    expect(found.next).toEqual({ kind: 'wait', on: 'right to settle' });
  });

  test('while inputs keep moving the wait ends at the cap, counted since it went stale', () => {
    const moving = [settling('right', { since: ago(1), progressAt: NOW })];
    const before = stale({ settling: moving, staleSince: ago(59) });
    expect(before).toMatchObject({ next: { kind: 'wait' }, until: inMinutes(1) });
    const after = stale({ settling: moving, staleSince: ago(60) });
    expect(after.next.kind).toBe('build');
    expect(after.reason).toContain('has waited since 2026-11-29T14:00Z for right, which still moves');
  });

  test('a newer commit does not begin the wait anew', () => {
    const head = { commit: B, since: NOW };
    const found = stale(
      { settling: [settling('right')], staleSince: ago(60) },
      { source: { ...inStep().source, head }, inspection: inspection({ commit: B }) },
    );
    expect(found.next.kind).toBe('build');
  });

  test('the times can be set', () => {
    const facts = inStep({ closure: 'c2', headBuild: null, graph: graph({ staleSince: ago(2), settling: [settling('right')] }) });
    expect(compare(facts, { ...defaultTimes, patience: 30_000 }).next.kind).toBe('build');
    expect(compare(facts, { ...defaultTimes, patienceCap: 60_000 }).next.kind).toBe('build');
    expect(compare(facts, defaultTimes).next.kind).toBe('wait');
  });

  test('a head whose closure has its verdict waits for nothing, whatever settles', () => {
    const found = compare(inStep({ graph: graph({ settling: [settling('core')] }) }), defaultTimes);
    expect(found).toMatchObject({ situation: 'in step', until: null });
  });

  test('held or asked about, a module is built and waits like any other', () => {
    const hold = { by: 'ada', why: 'fair week', at: NOW, buildId: null };
    expect(stale({ settling: [settling('right')] }, { hold }).next.kind).toBe('wait');
    expect(stale({}, { hold }).next.kind).toBe('build');
    expect(stale({}, { effectiveDeclare: 'ask' }).next.kind).toBe('build');
  });

  test('slow first commit, fast second: what nobody waits for any more is withdrawn, what runs is joined', () => {
    const queued = request({ id: 'queued', state: 'published', takenBy: null, takenAt: null, closure: 'closure-a1' });
    expect(stale({}, { requests: [queued] })).toMatchObject({ next: { kind: 'build', requestId: null }, cancel: ['queued'] });
    expect(stale({ settling: [settling('right')] }, { requests: [{ ...queued, closure: 'closure-a2' }] })).toMatchObject({
      next: { kind: 'wait' },
      cancel: ['queued'],
    });
    expect(stale({}, { requests: [{ ...queued, closure: 'closure-a2' }] })).toMatchObject({
      next: { kind: 'build', requestId: 'queued' },
      cancel: [],
    });
  });

  test('an input rebuilt while its dependant builds makes the dependant stale after, not wrong', () => {
    const running = request({ id: 'running', closure: 'closure-a1' });
    const during = stale({ settling: [settling('right')] }, { requests: [running] });
    expect(during).toMatchObject({ next: { kind: 'build', requestId: 'running' }, situation: 'building', cancel: [] });
    const after = stale({ settling: [settling('right', { since: ago(1) })] }, { requests: [{ ...running, requestedAt: ago(2) }] });
    expect(after.reason).not.toContain('right');
    expect(stale().next).toMatchObject({ kind: 'build', requestId: null });
  });

  test('past the cap what is in the queue stays there, so that it is built once', () => {
    const queued = request({ id: 'queued', state: 'published', takenBy: null, takenAt: null, closure: 'closure-a1' });
    const found = stale({ settling: [settling('right')], staleSince: ago(61) }, { requests: [queued] });
    expect(found).toMatchObject({ next: { kind: 'build', requestId: 'queued' }, cancel: [] });
  });

  test('another try of a judged closure waits for no input that only moves', () => {
    const again = { by: 'ada', at: NOW };
    const found = compare(inStep({ again, graph: graph({ settling: [settling('core')], staleSince: ago(10) }) }), defaultTimes);
    expect(found).toMatchObject({ next: { kind: 'build' }, reason: 'ada asked for another build of aaaaaaa' });
  });
});

describe('inputs that are not there', () => {
  const missing = { module: 'core', because: 'core has had no fit build yet', since: ago(90), needsPerson: false };

  test('an input without any artifact is waited for past the cap, and that is said', () => {
    const found = stale({ missing: [missing], staleSince: ago(90) });
    expect(found).toMatchObject({
      next: { kind: 'wait', on: 'core to carry what is imported' },
      situation: 'waiting',
      needsPerson: false,
      since: ago(90),
      until: null,
    });
    expect(found.line).toContain('waiting for core (has had no fit build yet) since 2026-11-29T13:30Z');
    expect(found.reason).toContain('waits for core: core has had no fit build yet');
  });

  test('what they are at stands in their own lines, so that no dependant is compared with each step of them', () => {
    const steps = [
      settling('core'),
      settling('core', { state: 'inspecting', takenBy: null }),
      settling('core', { state: 'building', takenBy: null }),
    ];
    for (const lacking of [[missing], []]) {
      const said = steps.map((core) => stale({ missing: lacking, settling: [core] })).map(({ line, reason, next }) => ({ line, reason, next }));
      expect(said[1]).toEqual(said[0]);
      expect(said[2]).toEqual(said[0]);
    }
  });

  test('one that will not come by itself needs a person and is named first', () => {
    const found = stale({ missing: [missing, { ...missing, module: 'types', because: 'types failed at 9c1f0e2', needsPerson: true }] });
    expect(found).toMatchObject({
      situation: 'waiting',
      needsPerson: true,
      next: { kind: 'wait', on: 'types and 1 more to carry what is imported' },
    });
  });

  test('another try waits for what is missing all the same', () => {
    const failed = build({ verdict: 'failed', closure: 'closure-a2' });
    expect(stale({ missing: [missing] }, { headBuild: failed, again: { by: 'ada', at: NOW } }).next.kind).toBe('wait');
  });
});

describe('cycles', () => {
  const cycle = ['meshboard', 'core', 'types', 'meshboard'];

  test('a member of a cycle is not built, the cycle is named and a person is needed', () => {
    const found = stale({ cycle });
    expect(found).toMatchObject({ next: { kind: 'nothing' }, situation: 'cycle', needsPerson: true, since: ago(10) });
    expect(found.reason).toBe('meshboard → core → types → meshboard is a cycle of build edges: none of them is built until one import is gone');
    expect(found.line).toContain('cycle meshboard → core → types → meshboard · the build with the inputs of before stays declared');
  });

  test('neither is it built again by hand, nor does its request stay in the queue; what runs ends', () => {
    const again = { by: 'ada', at: NOW };
    expect(stale({ cycle }, { again }).next.kind).toBe('nothing');
    const queued = request({ id: 'queued', state: 'published', closure: 'closure-a2' });
    expect(stale({ cycle }, { requests: [queued, request({ id: 'running', closure: 'closure-a2' })] }).cancel).toEqual(['queued']);
  });

  test('what is effective is declared and applied all the same', () => {
    const found = stale({ cycle }, { placements: [] });
    expect(found).toMatchObject({ next: { kind: 'nothing' }, situation: 'cycle' });
  });

  test('a bootstrap cycle is named and needs a person, until there is a verdict', () => {
    const bootstrap = ['meshboard', 'core', 'meshboard'];
    const found = stale({ bootstrap, missing: [{ module: 'core', because: 'core has had no fit build yet', since: NOW, needsPerson: false }] });
    expect(found).toMatchObject({ next: { kind: 'nothing' }, situation: 'cycle', needsPerson: true });
    expect(found.line).toContain('bootstrap cycle meshboard → core → meshboard');
    expect(compare(inStep({ graph: graph({ bootstrap }) }), defaultTimes).situation).toBe('in step');
  });
});

test('a name that another module exported before is invalid, and both are named', () => {
  const found = stale({ conflicts: [{ name: 'example.com/core', module: 'core' }] });
  expect(found).toMatchObject({ next: { kind: 'nothing' }, situation: 'invalid', needsPerson: true });
  expect(found.reason).toBe('meshboard exports example.com/core, which core exported before: one of the two has to change its name');
});

test('edges of before that are in force are said in the line', () => {
  const found = compare(inStep({ graph: graph({ unparsed: ['a.py:3 invalid syntax', 'b.py:9 invalid syntax'] }) }), defaultTimes);
  expect(found.situation).toBe('in step');
  expect(found.line).toContain('a.py:3 invalid syntax and 1 more files: cannot be parsed, its edges of before stay');
});

describe('properties', () => {
  const wantsBuild = ({ next }: Comparison): boolean => next.kind === 'build' && next.requestId === null;

  test('a member of a cycle is never asked to be built', () => {
    fc.assert(
      fc.property(arbFacts, (facts) => {
        if (facts.graph.cycle !== null) expect(wantsBuild(compare(facts, defaultTimes))).toBe(false);
      }),
      { numRuns: 4_000 },
    );
  });

  test('past the cap nothing is waited for but an input that has no artifact', () => {
    fc.assert(
      fc.property(arbFacts, fc.constantFrom('valid' as const, 'invalid' as const), (some, outcome) => {
        const facts = { ...some, inspection: inspection({ commit: A, outcome }), source: { ...some.source, head: { commit: A, since: ago(600) } } };
        const capped = { ...facts, graph: { ...facts.graph, staleSince: ago(61) } };
        const { next } = compare(capped, defaultTimes);
        if (next.kind === 'wait' && next.on.endsWith('to settle')) throw new Error(`still waits for ${next.on}`);
        if (next.kind === 'wait' && next.on.startsWith('an artifact')) expect(facts.graph.missing).not.toEqual([]);
      }),
      { numRuns: 4_000 },
    );
  });

  test('what waits for inputs is looked at again by itself, and what it says to withdraw nobody has taken', () => {
    fc.assert(
      fc.property(arbFacts, (facts) => {
        const found = compare(facts, defaultTimes);
        if (found.next.kind === 'wait' && found.next.on.endsWith('to settle')) expect(found.until).not.toBeNull();
        const ofHead = facts.requests.filter((one) => found.cancel.includes(one.id) && one.commit === facts.source.head?.commit);
        for (const one of ofHead) expect(one).toMatchObject({ kind: 'build', isStopping: false });
        for (const one of ofHead) expect(one.state).not.toBe('taken');
      }),
      { numRuns: 4_000 },
    );
  });

  test('as time passes and nothing else moves, a wait for settling ends and does not come back', () => {
    fc.assert(
      fc.property(arbFacts, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 2, maxLength: 8 }), (facts, steps) => {
        let minutes = 0;
        let hasEnded = false;
        const isWaiting = ({ next }: Comparison): boolean => next.kind === 'wait' && next.on.endsWith('to settle');
        if (!isWaiting(compare(facts, defaultTimes))) return;
        for (const step of steps) {
          minutes += step;
          const waits = isWaiting(compare({ ...facts, now: inMinutes(minutes) }, defaultTimes));
          if (hasEnded) expect(waits).toBe(false);
          if (minutes >= 60) expect(waits).toBe(false);
          hasEnded = !waits;
        }
      }),
      { numRuns: 4_000 },
    );
  });
});

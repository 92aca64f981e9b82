import { advance, type Steps } from '../../activities/advance';
import { compare } from '../../src/domain/comparison';
import type { Comparison, Facts } from '../../src/domain/facts';
import { defaultTimes } from '../../src/domain/times';
import { B, inStep, NOW, request } from '../support/facts';

const moved = (changes: Partial<Facts> = {}): Facts => {
  const facts = inStep();
  return { ...facts, source: { ...facts.source, head: { commit: B, since: NOW } }, ...changes };
};

/** One snapshot after the other, the last one for ever; what was done, in order. */
function steps(...snapshots: ReadonlyArray<Facts | null>): { readonly steps: Steps; readonly done: string[] } {
  const done: string[] = [];
  let at = 0;
  const compared = (): Comparison | null => {
    const facts = snapshots[Math.min(at, snapshots.length - 1)] ?? null;
    at += 1;
    done.push('compare');
    return facts === null ? null : compare(facts, defaultTimes);
  };
  const act = (what: string): Promise<boolean> => {
    done.push(what);
    return Promise.resolve(snapshots.length > 1);
  };
  return {
    done,
    steps: {
      compare: () => Promise.resolve(compared()),
      record: ({ situation }) => Promise.resolve(void done.push(`record ${situation}`)),
      openRequest: () => act('open'),
      declare: () => act('declare'),
      cancel: (ids) => Promise.resolve(void done.push(`cancel ${ids.join(' ')}`)),
      now: () => new Date(NOW),
    },
  };
}

test('a turn acts, compares again, and records only what it ends with', async () => {
  const asked = request({ kind: 'inspect', commit: B, state: 'published' });
  const turn = steps(moved(), moved({ requests: [asked] }));
  expect(await advance(turn.steps)).toMatchObject({ hasActed: true, cancelled: [], look: { next: 'inspect', requestId: asked.id } });
  expect(turn.done).toEqual(['compare', 'open', 'compare', 'record waiting']);
});

test('what is not wanted any more is cancelled first, and said', async () => {
  const old = request({ id: 'old', state: 'published' });
  const turn = steps(moved({ requests: [old] }), moved({ requests: [request({ kind: 'inspect', commit: B, state: 'published' })] }));
  expect(await advance(turn.steps)).toMatchObject({ hasActed: false, cancelled: ['old'] });
  expect(turn.done.slice(0, 2)).toEqual(['compare', 'cancel old']);
});

test('an act that the facts refuse over and over ends the turn, which is taken again soon', async () => {
  const turn = steps(moved());
  const { look, hasActed } = await advance(turn.steps);
  expect(hasActed).toBe(false);
  expect(turn.done.filter((one) => one === 'open')).toHaveLength(6);
  expect(look?.until).toBe(new Date(Date.parse(NOW) + 5_000).toISOString());
});

test('a module that is no more has no look', async () => {
  const turn = steps(null);
  expect(await advance(turn.steps)).toEqual({ look: null, cancelled: [], hasActed: false });
  expect(turn.done).toEqual(['compare']);
});

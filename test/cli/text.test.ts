import fc from 'fast-check';
import stringWidth from 'string-width';
import { statusTable } from '../../src/cli/statusTable';
import { cut, fitted, lasted, listed, wrapped } from '../../src/cli/text';
import type { ModuleRow, StatusAnswer } from '../../src/schema/api';

const words = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 120 }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.constantFrom('表示が失敗', 'a · b · c', '👩‍👩‍👧 down'),
);

const row: fc.Arbitrary<ModuleRow> = fc.record({
  module: words,
  urgency: fc.constantFrom('needs you' as const, 'moving' as const, 'held' as const, 'in step' as const),
  situation: fc.constantFrom(null, 'failed', 'building', 'stuck'),
  verdict: fc.constantFrom('outstanding' as const, 'fit' as const, 'failed' as const),
  line: words,
  headline: words,
  reason: words,
  since: fc.constantFrom(null, '2026-11-29T14:02:00.000Z'),
  remedy: fc.option(words, { nil: null }),
  head: fc.constant(null),
  next: fc.constant(null),
  counts: fc.constant({ placements: 0, declared: 0, applied: 0, outstanding: 0, stuck: 0 }),
  isHeld: fc.boolean(),
  buildsOn: fc.constant({ first: [], count: 0 }),
  builtOnBy: fc.constant({ first: [], count: 0 }),
  cutOffAt: fc.constantFrom(null, '2026-11-29T14:02:00.000Z'),
  notReproducible: fc.boolean(),
});

const statuses: fc.Arbitrary<StatusAnswer> = fc.record({
  now: fc.constant('2026-11-29T15:00:00.000Z'),
  inStep: fc.boolean(),
  summary: fc.record({
    mesh: words,
    modules: fc.nat(),
    inStep: fc.nat(),
    nodes: fc.nat(),
    away: fc.nat(),
    awaySince: fc.constant(null),
    notWorkedOut: fc.nat(),
  }),
  modules: fc.array(row, { maxLength: 12 }),
  stuck: fc.constant([]),
  nodes: fc.constant([]),
  builders: fc.constant([]),
  alarms: fc.array(fc.record({ what: words, since: fc.constant(null), remedy: words }), { maxLength: 2 }),
  workflows: fc.constant(null),
});

test('the table fits its width whatever the words, and holds no control character', () => {
  fc.assert(
    fc.property(statuses, fc.integer({ min: 60, max: 120 }), (status, width) => {
      for (const line of statusTable(status, width)) {
        expect(stringWidth(line)).toBeLessThanOrEqual(width);
        expect(line).not.toMatch(/\p{Cc}/u);
      }
    }),
    { numRuns: 300 },
  );
});

test('a line that is too long loses of its longest part first, so that each fact is still named', () => {
  expect(fitted('failed at 9c1f0e2 · AssertionError: the price of coffee should be two euros fifty · 77ab310 stays declared', 67)).toBe(
    'failed at 9c1f0e2 · AssertionError: the p… · 77ab310 stays declared',
  );
});

test('text is cut by columns, not by characters', () => {
  expect(cut('表示が失敗しました', 8)).toBe('表示が…');
  expect(wrapped('one two three', 7)).toEqual(['one two', 'three']);
});

test.each([
  [40, '40 s'],
  [150, '2 min'],
  [7_300, '2 h'],
  [200_000, '2 d'],
])('%d seconds are said as %s', (seconds, said) => {
  expect(lasted('2026-11-29T14:00:00.000Z', new Date(Date.parse('2026-11-29T14:00:00.000Z') + seconds * 1_000).toISOString())).toBe(said);
});

test('a name that a verb takes is never cut; what is said of it stands beside it, or below where there is no room', () => {
  const name = 'a'.repeat(40);
  expect(listed([['notes-db', 'made 14:02 · db of notes on beta · postgres-database by postgres on alpha']], 60)).toEqual([
    'notes-db  made 14:02 · db of notes on beta',
    '          postgres-database by postgres on alpha',
  ]);
  expect(listed([[name, 'not made yet · db of notes']], 60, 2)).toEqual([`  ${name}`, '    not made yet · db of notes']);
});

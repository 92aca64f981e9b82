import { minuteOf, renderTimes } from '../../src/domain/times';

const now = Date.parse('2026-11-29T15:00:00Z');

test('a time of today is shown as a clock, an older one with its day', () => {
  expect(renderTimes('since 2026-11-29T14:02Z, before 2026-11-28T09:12Z', now)).toBe('since 14:02, before 28 Nov 09:12');
});

test('the reader’s zone decides which day it was', () => {
  expect(renderTimes('since 2026-11-28T23:30Z', now, 60)).toBe('since 00:30');
});

test('a time to the minute is what renderTimes finds', () => {
  expect(renderTimes(minuteOf('2026-11-29T14:02:59.123Z'), now)).toBe('14:02');
});

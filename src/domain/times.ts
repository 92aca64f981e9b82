/** The times of the design, in milliseconds; each can be set by TALLY_TIMES_<NAME> (see src/config). */

export interface Times {
  readonly readRefs: number;
  readonly sweep: number;
  readonly fullPass: number;
  readonly hostBeat: number;
  readonly hostAway: number;
  readonly driftCheck: number;
  readonly builderBeat: number;
  readonly builderLost: number;
  readonly unpublished: number;
  readonly unclaimed: number;
  readonly requestPass: number;
  readonly patience: number;
  readonly patienceCap: number;
  readonly retryFirst: number;
  readonly retryMost: number;
  readonly stuckAfter: number;
  readonly serviceSettle: number;
  readonly fallback: number;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

export const defaultTimes: Times = {
  readRefs: 60 * second,
  sweep: 10 * second,
  fullPass: hour,
  hostBeat: 15 * second,
  hostAway: 45 * second,
  driftCheck: 10 * minute,
  builderBeat: 10 * second,
  builderLost: 60 * second,
  unpublished: 30 * second,
  unclaimed: 5 * minute,
  requestPass: 10 * second,
  patience: 15 * minute,
  patienceCap: hour,
  retryFirst: 5 * second,
  retryMost: 10 * minute,
  stuckAfter: hour,
  serviceSettle: 3 * second,
  fallback: 6 * hour,
};

/** @param ms for how long, at least. */
export function hasLasted(since: string, now: string, ms: number): boolean {
  return Date.parse(now) - Date.parse(since) >= ms;
}

/** The form in which a time stands in a stored line: to the minute, in UTC. */
export function minuteOf(iso: string): string {
  return `${iso.slice(0, 16)}Z`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/**
 * Makes the times of a line short: 14:02 today, 28 Nov 14:02 before.
 * @param offsetMinutes the reader's zone, minutes east of UTC.
 */
export function renderTimes(text: string, nowMs: number, offsetMinutes = 0): string {
  const shift = offsetMinutes * minute;
  const today = new Date(nowMs + shift).toISOString().slice(0, 10);
  return text.replace(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}Z/g, (found) => {
    const local = new Date(Date.parse(found) + shift).toISOString();
    const clock = local.slice(11, 16);
    if (local.slice(0, 10) === today) return clock;
    return `${Number(local.slice(8, 10))} ${months[Number(local.slice(5, 7)) - 1] ?? ''} ${clock}`;
  });
}

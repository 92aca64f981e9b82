/**
 * The run of reports in which one module on one node failed on exactly the same resource ids, whatever the words.
 * Order is by number, never by a clock; a report counts once however often it is delivered.
 */
import type { Iso } from './facts';

export interface Outcome {
  /** The number of the report within its epoch. */
  readonly number: number;
  /** When it was taken in. */
  readonly at: Iso;
  /** Empty: everything of the module was read back as held. */
  readonly failures: ReadonlyArray<{ readonly resource: string; readonly message: string }>;
}

export interface Run {
  /** Sorted; never empty. */
  readonly resources: readonly string[];
  readonly count: number;
  readonly since: Iso;
  /** The words of the newest. */
  readonly message: string;
}

/** The run after one more report; null: it was a clean apply. */
export function foldReport(run: Run | null, outcome: Outcome): Run | null {
  const [first] = outcome.failures;
  if (first === undefined) return null;
  const resources = [...new Set(outcome.failures.map((failure) => failure.resource))].sort();
  const { message } = first;
  if (run === null || !isSame(run.resources, resources)) return { resources, count: 1, since: outcome.at, message };
  return { ...run, count: run.count + 1, message };
}

/** The run after these reports, in whatever order and how often they were delivered. */
export function foldReports(run: Run | null, outcomes: readonly Outcome[]): Run | null {
  return inOrder(outcomes).reduce(foldReport, run);
}

/**
 * The run after late reports have been put in their places among the kept ones.
 * @param kept what was folded already, back to where reports are still stored
 * @param late none older than what is no longer stored
 * @param run what the fold of all that came before has given so far, kept ones included
 */
export function foldLate(run: Run | null, kept: readonly Outcome[], late: readonly Outcome[]): Run | null {
  const known = inOrder(kept);
  const before = foldReports(null, known);
  // A run that is longer than what is kept began before it; what came late cannot have been there.
  const carried =
    run !== null && before !== null && run.count > known.length && before.count === known.length ? { ...run, count: run.count - known.length } : null;
  return foldReports(carried, [...known, ...late]);
}

function inOrder(outcomes: readonly Outcome[]): Outcome[] {
  return [...new Map(outcomes.map((outcome) => [outcome.number, outcome])).values()].sort((a, b) => a.number - b.number);
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((resource, i) => resource === b[i]);
}

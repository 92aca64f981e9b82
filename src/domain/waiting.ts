/**
 * Ordering: whether a head that has no verdict may be built now, as far as the graph goes, and what it waits for if not.
 * Whether it is stale at all is another question, and another file: currency.ts.
 */
import type { Facts, GraphFacts, Iso, MissingInput, OpenImport, SettlingInput } from './facts';
import { minuteOf, type Times } from './times';

export interface Wait {
  /** "core to settle": what has to happen first. */
  readonly on: string;
  /** How the result line says it. */
  readonly part: string;
  readonly reason: string;
  readonly since: Iso;
  readonly needsPerson: boolean;
  /** Whom it names as not inspected yet. */
  readonly unread?: string;
}

/** An input without an artifact that carries what is imported is waited for without bound, all else while it gets on and the cap is not reached. */
export function waitOf(facts: Facts, times: Times): Wait | null {
  return waitForMissing(facts.graph) ?? waitForSettling(facts, times) ?? waitForUnread(facts, times);
}

/** There is nothing to build with. What an input is at stands in its own line and in `why`: a dependant is not compared anew with each step of it. */
export function waitForMissing({ missing }: GraphFacts): Wait | null {
  const [first] = [...missing].sort((a, b) => Number(b.needsPerson) - Number(a.needsPerson) || (a.module < b.module ? -1 : 1));
  if (first === undefined) return null;
  const needsPerson = missing.some((input) => input.needsPerson);
  const others = andMore(new Set(missing.map((input) => input.module)).size);
  return {
    on: `${first.module}${others} to carry what is imported`,
    part: `waiting for ${first.module} (${because(first)})${others} since ${minuteOf(first.since)}`,
    reason: `waits for ${first.module}${others}: ${first.because}`,
    since: first.since,
    needsPerson,
  };
}

/** In brackets after the module's name that name is not said again. */
function because({ module, because: clause }: MissingInput): string {
  return clause.startsWith(`${module} `) ? clause.slice(module.length + 1) : clause;
}

function waitForSettling(facts: Facts, times: Times): Wait | null {
  if (isPastCap(facts, times)) return null;
  const [first, ...others] = gettingOn(facts, times);
  if (first === undefined) return null;
  const since = waitsSince(facts);
  const more = andMore(others.length + 1);
  return {
    on: `${first.module}${more} to settle`,
    part: `waiting for ${first.module}${more} since ${minuteOf(since)}`,
    reason: `waits for ${first.module}${more} to settle`,
    since,
    needsPerson: false,
  };
}

/** What an import is of that nobody exports is not known before all code has been read that may export it. One is named: others come and go meanwhile. */
function waitForUnread(facts: Facts, times: Times): Wait | null {
  const open = facts.graph.openImport;
  if (open === null || isPastCap(facts, times) || !isGettingOn(open, facts, times)) return null;
  const since = waitsSince(facts);
  return {
    on: `${open.module} to be inspected`,
    part: `waiting for ${open.module} (not inspected yet) since ${minuteOf(since)}`,
    reason: `waits for ${open.module} to be inspected, since nobody exports ${open.name} (${open.file}:${open.line}) yet`,
    since,
    needsPerson: false,
    unread: open.module,
  };
}

function unread({ module, hasOthers }: OpenImport): string {
  return hasOthers ? `${module} and others` : module;
}

function isGettingOn({ progressAt }: { readonly progressAt: Iso }, { now }: Facts, { patience }: Times): boolean {
  return Date.parse(now) - Date.parse(progressAt) < patience;
}

/** Settling inputs that patience is not over for, those that work before those that wait. */
function gettingOn(facts: Facts, times: Times): SettlingInput[] {
  return facts.graph.settling
    .filter((input) => isGettingOn(input, facts, times))
    .sort((a, b) => Number(a.state === 'waiting') - Number(b.state === 'waiting') || (a.module < b.module ? -1 : 1));
}

/** What an input that has not settled is at, as `why` says it. */
export function stateOf({ state, takenBy }: SettlingInput): string {
  if (state === 'waiting') return 'waiting for its inputs';
  if (takenBy === null) return `${state === 'building' ? 'its build' : 'its inspection'} waits for a builder`;
  return `${state} on ${takenBy}`;
}

function andMore(count: number): string {
  return count > 1 ? ` and ${count - 1} more` : '';
}

function waitsSince({ graph, source, now }: Facts): Iso {
  return graph.staleSince ?? source.head?.since ?? now;
}

/** It has been stale so long that it is built with what is effective, whatever still moves. */
export function isPastCap(facts: Facts, times: Times): boolean {
  return Date.parse(facts.now) - Date.parse(waitsSince(facts)) >= times.patienceCap;
}

/**
 * Why it goes on although an input has not settled, or code that may export one has not been read; null when all have.
 * @param askedAt when its build was asked for: what has begun to move since then was not waited for.
 */
export function goesOnReason(facts: Facts, times: Times, askedAt: Iso = facts.now): string | null {
  const settling = facts.graph.settling.filter((input) => Date.parse(input.since) < Date.parse(askedAt));
  const [first] = settling;
  if (first === undefined) return goesOnUnread(facts, askedAt);
  const more = andMore(settling.length);
  if (gettingOn(facts, times).some((input) => settling.includes(input)))
    return `has waited since ${minuteOf(waitsSince(facts))} for ${first.module}${more}, which still moves`;
  const latest = [...settling].sort((a, b) => (a.progressAt < b.progressAt ? 1 : -1))[0] ?? first;
  return `goes on without ${latest.module}${more}, no progress since ${minuteOf(latest.progressAt)}`;
}

function goesOnUnread({ graph: { openImport } }: Facts, askedAt: Iso): string | null {
  if (openImport === null || Date.parse(openImport.progressAt) >= Date.parse(askedAt)) return null;
  return `goes on without ${unread(openImport)}, not inspected yet, which may export ${openImport.name}`;
}

/** When what is waited for now may have to be waited for no more, though no fact moves. */
export function waitDeadlines(facts: Facts, times: Times): number[] {
  const { openImport } = facts.graph;
  const waitedFor = [...gettingOn(facts, times), ...(openImport !== null && isGettingOn(openImport, facts, times) ? [openImport] : [])];
  const patient = waitedFor.map(({ progressAt }) => Date.parse(progressAt) + times.patience);
  return patient.length === 0 ? [] : [...patient, Date.parse(waitsSince(facts)) + times.patienceCap];
}

/**
 * The heart: from the facts of one module, what is so, what is next and why. Pure, total, small.
 * It reads top to bottom as one story; everything else only carries out what it says.
 */
import type { BuildFacts, Comparison, DeclarePolicy, Facts, Iso, Next, PlacementFacts, RequestFacts, Situation, Verdict } from './facts';
import { resultLine, short } from './line';
import { minuteOf, type Times } from './times';

/** What the comparison found about the head before anything is decided about nodes. */
type Head =
  | { readonly state: 'unknown' }
  | { readonly state: 'uninspected'; readonly request: RequestFacts | null }
  | { readonly state: 'invalid'; readonly problem: string; readonly since: Iso }
  | { readonly state: 'unbuilt'; readonly request: RequestFacts | null; readonly closure: string }
  | { readonly state: 'failed'; readonly build: BuildFacts }
  | { readonly state: 'fit'; readonly build: BuildFacts };

interface Decision {
  readonly next: Next;
  readonly situation: Situation;
  readonly reason: string;
  readonly since: Iso | null;
  readonly needsPerson: boolean;
}

export function compare(facts: Facts, times: Times): Comparison {
  const head = readHead(facts);
  const nodes = readNodes(facts, times);
  const decision = decide(facts, head, nodes, times);
  return {
    module: facts.module,
    version: facts.version,
    ...decision,
    cancel: superseded(facts),
    verdict: verdictOf(facts),
    line: resultLine(facts, nodes, head.state === 'invalid' ? head.problem : null),
    until: nextLook(facts, nodes, times),
    inStep: decision.situation === 'in step',
    counts: {
      placements: facts.placements.length,
      declared: nodes.declared.length,
      applied: nodes.applied.length,
      outstanding: nodes.outstanding.length,
      stuck: nodes.stuck.length,
    },
    stuckOn: nodes.stuck.map((placement) => placement.node),
  };
}

function readHead(facts: Facts): Head {
  const { source, inspection } = facts;
  if (source.head === null) return { state: 'unknown' };
  const { commit } = source.head;
  const open = (kind: RequestFacts['kind']): RequestFacts | null =>
    facts.requests.find((request) => request.kind === kind && request.commit === commit && !request.isStopping) ?? null;
  if (inspection === null || inspection.commit !== commit) return { state: 'uninspected', request: open('inspect') };
  if (inspection.outcome === 'invalid') {
    return { state: 'invalid', problem: inspection.problems[0] ?? 'its manifest is invalid', since: inspection.answeredAt };
  }
  const closure = facts.closure ?? '';
  const request = open('build');
  const { headBuild } = facts;
  if (headBuild === null || headBuild.verdict === 'outstanding' || facts.again !== null || request !== null)
    return { state: 'unbuilt', request, closure };
  return headBuild.verdict === 'fit' ? { state: 'fit', build: headBuild } : { state: 'failed', build: headBuild };
}

export interface Nodes {
  readonly declared: readonly PlacementFacts[];
  readonly applied: readonly PlacementFacts[];
  readonly outstanding: readonly PlacementFacts[];
  readonly stuck: readonly PlacementFacts[];
  /** Placements that the effective build is not declared on yet. */
  readonly undeclared: readonly PlacementFacts[];
}

function readNodes(facts: Facts, times: Times): Nodes {
  const declared = facts.placements.filter((placement) => placement.build !== null);
  const outstanding = declared.filter((placement) => !placement.isApplied);
  return {
    declared,
    applied: declared.filter((placement) => placement.isApplied),
    outstanding,
    stuck: outstanding.filter((placement) => isStuck(placement, facts.now, times)),
    undeclared: facts.placements.filter((placement) => placement.build === null || placement.build.id !== facts.effective?.id),
  };
}

/** Three reports failed on the same resources, or one trouble held for an hour. A node that is off is neither. */
function isStuck(placement: PlacementFacts, now: Iso, times: Times): boolean {
  const { failing } = placement;
  if (failing !== null) return failing.count >= 3 || hasLasted(failing.since, now, times.stuckAfter);
  const isTroubled = placement.waitingOn === 'send' || placement.waitingOn === 'workout';
  return (
    isTroubled && placement.detail !== null && placement.outstandingSince !== null && hasLasted(placement.outstandingSince, now, times.stuckAfter)
  );
}

function decide(facts: Facts, head: Head, nodes: Nodes, times: Times): Decision {
  const standing = standingOf(facts, head, nodes, times);
  const declare = declaring(facts, nodes);
  if (declare !== null && declare.next.kind === 'declare') {
    return standing?.needsPerson === true ? { ...standing, next: declare.next } : declare;
  }
  const pipeline = headWork(facts, head, times);
  if (pipeline !== null) return standing?.needsPerson === true && !pipeline.needsPerson ? { ...standing, next: pipeline.next } : pipeline;
  const rest = declare ?? tracking(facts, nodes);
  // Held is a decision about declaring: what is declared is owed all the same.
  if (standing !== null && (rest === null || standing.situation !== 'held')) return rest === null ? standing : { ...standing, next: rest.next };
  if (rest !== null) return rest;
  const [bare] = nodes.undeclared;
  if (bare !== undefined) {
    const on = 'a fit build that may be declared';
    return {
      next: { kind: 'wait', on },
      situation: 'waiting',
      reason: `${bare.node} is declared nothing: there is no effective build`,
      since: facts.source.head?.since ?? null,
      needsPerson: true,
    };
  }
  return { next: { kind: 'nothing' }, situation: 'in step', reason: inStepReason(facts), since: null, needsPerson: false };
}

function inStepReason(facts: Facts): string {
  return facts.placements.length === 0 ? 'the head is fit and the module is placed on no node' : 'source, built, declared and applied agree';
}

/** What is so and stays so until somebody or something outside moves; null when nothing of that kind is. */
function standingOf(facts: Facts, head: Head, nodes: Nodes, times: Times): Decision | null {
  const nothing: Next = { kind: 'nothing' };
  if (head.state === 'invalid') {
    return {
      next: nothing,
      situation: 'invalid',
      reason: `the manifest at ${shortHead(facts)} is invalid: ${head.problem}`,
      since: head.since,
      needsPerson: true,
    };
  }
  if (head.state === 'failed') {
    const { build } = head;
    return {
      next: nothing,
      situation: 'failed',
      reason: `${short(build.commit)} failed: ${build.reason ?? 'no reason given'}`,
      since: build.answeredAt,
      needsPerson: true,
    };
  }
  const stuck = nodes.stuck[0];
  if (stuck !== undefined) {
    return {
      next: nothing,
      situation: 'stuck',
      reason: `${stuck.node}: ${stuck.failing === null ? (stuck.detail ?? 'the same trouble for an hour') : `${stuck.failing.resources.join(', ')} · ${stuck.failing.message}`}`,
      since: stuck.failing?.since ?? stuck.outstandingSince,
      needsPerson: true,
    };
  }
  const { trouble } = facts.source;
  if (trouble !== null) {
    const needsPerson = trouble.kind === 'absent' || hasLasted(trouble.since, facts.now, times.stuckAfter);
    return { next: nothing, situation: 'unreadable', reason: trouble.reason, since: trouble.since, needsPerson };
  }
  if (head.state === 'unknown') {
    return {
      next: { kind: 'wait', on: 'the first reading of its source' },
      situation: 'settling',
      reason: 'its source has not been read yet',
      since: null,
      needsPerson: false,
    };
  }
  const { hold } = facts;
  if (hold !== null) {
    return { next: nothing, situation: 'held', reason: `held by ${hold.by}: ${hold.why}`, since: hold.at, needsPerson: false };
  }
  return null;
}

/** What the head still needs before it has a verdict. */
function headWork(facts: Facts, head: Head, times: Times): Decision | null {
  const source = facts.source.head;
  if (source === null) return null;
  if (head.state === 'uninspected') {
    const next: Next = { kind: 'inspect', commit: source.commit, requestId: head.request?.id ?? null };
    return inFlight(facts, next, head.request, 'settling', `${short(source.commit)} has not been inspected yet`, source.since, times);
  }
  if (head.state === 'unbuilt') {
    const next: Next = { kind: 'build', commit: source.commit, closure: head.closure, requestId: head.request?.id ?? null };
    return inFlight(facts, next, head.request, 'building', buildReason(facts), source.since, times);
  }
  return null;
}

function buildReason(facts: Facts): string {
  const at = shortHead(facts);
  if (facts.again !== null) return `${facts.again.by} asked for another build of ${at}`;
  if (facts.effective === null) return `${at} has not been built and nothing was before`;
  return `source moved to ${at}, built from ${short(facts.effective.commit)}`;
}

function inFlight(facts: Facts, next: Next, request: RequestFacts | null, situation: Situation, reason: string, since: Iso, times: Times): Decision {
  if (request === null) return { next, situation, reason, since, needsPerson: false };
  const { trouble } = request;
  if (trouble !== null) {
    const lasting: Situation = hasLasted(trouble.since, facts.now, times.stuckAfter) ? 'stuck' : 'waiting';
    const found: Situation = request.isSuspect ? 'suspect' : lasting;
    return {
      next,
      situation: found,
      reason: `attempt ${request.attempt}: ${trouble.reason}`,
      since: trouble.since,
      needsPerson: found !== 'waiting',
    };
  }
  if (request.state === 'taken') {
    return {
      next,
      situation,
      reason: `${reason}; ${request.takenBy ?? 'a builder'} is at ${request.step ?? 'it'}`,
      since: request.takenAt,
      needsPerson: false,
    };
  }
  const seen = facts.builderSeenAt === null ? 'no builder has ever been seen' : `last builder seen ${minuteOf(facts.builderSeenAt)}`;
  return {
    next,
    situation: 'waiting',
    reason: `no builder has taken it since ${minuteOf(request.requestedAt)}; ${seen}`,
    since: request.requestedAt,
    needsPerson: hasLasted(request.requestedAt, facts.now, times.stuckAfter),
  };
}

/** The fit, effective build that some placements do not name yet. */
function declaring(facts: Facts, nodes: Nodes): Decision | null {
  const { effective } = facts;
  if (effective === null || effective.verdict !== 'fit' || nodes.undeclared.length === 0 || facts.hold !== null) return null;
  const policy: DeclarePolicy = facts.effectiveDeclare ?? facts.meshDeclare;
  const names = nodes.undeclared.map((placement) => placement.node);
  if (policy === 'auto' || facts.approved?.buildId === effective.id) {
    return {
      next: { kind: 'declare', buildId: effective.id, commit: effective.commit, nodes: names },
      situation: 'declaring',
      reason: `${short(effective.commit)} is fit and ${names.length} of ${facts.placements.length} nodes are declared otherwise`,
      since: effective.answeredAt,
      needsPerson: false,
    };
  }
  return {
    next: { kind: 'ask', buildId: effective.id, commit: effective.commit, nodes: names.length },
    situation: 'asking',
    reason: `${short(effective.commit)} is fit and waits for a person to declare it on ${names.length} nodes`,
    since: effective.answeredAt,
    needsPerson: true,
  };
}

function tracking(facts: Facts, nodes: Nodes): Decision | null {
  const [first] = nodes.outstanding;
  if (first === undefined) return null;
  const since =
    nodes.outstanding
      .map((placement) => placement.outstandingSince)
      .filter((at) => at !== null)
      .sort()[0] ?? null;
  return {
    next: { kind: 'track', nodes: nodes.outstanding.length },
    situation: 'applying',
    reason: `waits for ${nodes.outstanding.length} of ${facts.placements.length} nodes: ${first.node} ${owes(first)}`,
    since,
    needsPerson: false,
  };
}

function owes(placement: PlacementFacts): string {
  const detail = placement.detail === null ? '' : ` (${placement.detail})`;
  if (placement.awaySince !== null) return `is away since ${minuteOf(placement.awaySince)}`;
  if (placement.failing !== null) return `failed ${placement.failing.resources.join(', ')}${detail}`;
  if (placement.waitingOn === 'workout') return `cannot be worked out${detail}`;
  if (placement.waitingOn === 'send') return `has not been sent it${detail}`;
  if (placement.waitingOn === 'node') return 'has been sent it and has not received it';
  return 'has not applied it';
}

/** The newest answer holds until another try of the same closure has answered. */
function verdictOf(facts: Facts): Verdict {
  return facts.headBuild?.verdict ?? 'outstanding';
}

/** A new head cancels what has not started, and what runs only where the module says so. */
function superseded(facts: Facts): readonly string[] {
  const head = facts.source.head?.commit;
  if (head === undefined) return [];
  const stopsRunning = facts.inspection?.commit === head && facts.inspection.supersede === 'cancel';
  return facts.requests
    .filter((request) => !request.isStopping && request.commit !== head && (request.state !== 'taken' || stopsRunning))
    .map((request) => request.id);
}

function nextLook(facts: Facts, nodes: Nodes, times: Times): Iso | null {
  const deadlines: number[] = [];
  const after = (iso: Iso, ms: number): void => {
    const at = Date.parse(iso) + ms;
    if (at > Date.parse(facts.now)) deadlines.push(at);
  };
  if (facts.source.trouble !== null) after(facts.source.trouble.since, times.stuckAfter);
  for (const request of facts.requests) after(request.trouble?.since ?? request.requestedAt, times.stuckAfter);
  for (const placement of nodes.outstanding) {
    const from = placement.failing?.since ?? (placement.detail === null ? null : placement.outstandingSince);
    if (from !== null) after(from, times.stuckAfter);
    // A node that went away is said; once it is, nothing is due for it any more.
    if (placement.awaySince === null && placement.outstandingSince !== null) deadlines.push(Date.parse(facts.now) + times.hostAway);
  }
  return deadlines.length === 0 ? null : new Date(Math.min(...deadlines)).toISOString();
}

function hasLasted(since: Iso, now: Iso, ms: number): boolean {
  return Date.parse(now) - Date.parse(since) >= ms;
}

function shortHead(facts: Facts): string {
  return facts.source.head === null ? 'its head' : short(facts.source.head.commit);
}

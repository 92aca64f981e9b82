/**
 * The heart: from the facts of one module, what is so, what is next and why. Pure, total, small.
 * It reads top to bottom as one story; everything else only carries out what it says.
 */
import { isOutdated, isUnstarted, staleReason } from './currency';
import type { BuildFacts, Comparison, Decision, Facts, Iso, Next, RequestFacts, Situation, Verdict } from './facts';
import { resultLine } from './line';
import { blocking, declaring, type Nodes, readNodes, tracking } from './nodes';
import { hasLasted, minuteOf, type Times } from './times';
import { goesOnReason, isPastCap, type Wait, waitDeadlines, waitForMissing, waitOf } from './waiting';
import { short } from './words';

/** What the comparison found about the head before anything is decided about nodes. */
type Head =
  | { readonly state: 'unknown' }
  | { readonly state: 'uninspected'; readonly request: RequestFacts | null }
  | { readonly state: 'invalid'; readonly problem: string; readonly reason: string; readonly since: Iso }
  | { readonly state: 'cycle'; readonly way: string; readonly isBootstrap: boolean; readonly since: Iso }
  | { readonly state: 'waiting'; readonly wait: Wait }
  | { readonly state: 'unbuilt'; readonly request: RequestFacts | null; readonly closure: string }
  | { readonly state: 'failed'; readonly build: BuildFacts }
  | { readonly state: 'fit'; readonly build: BuildFacts };

export function compare(facts: Facts, times: Times): Comparison {
  const head = readHead(facts, times);
  const nodes = readNodes(facts, times);
  const decision = decide(facts, head, nodes, times);
  return {
    module: facts.module,
    version: facts.version,
    ...decision,
    cancel: unwanted(facts, head, times),
    verdict: verdictOf(facts),
    line: resultLine(facts, nodes, headPart(head)),
    until: nextLook(facts, head, nodes, times),
    inStep: decision.situation === 'in step',
    counts: {
      placements: facts.placements.length,
      declared: nodes.declared.length,
      applied: nodes.applied.length,
      outstanding: nodes.outstanding.length,
      stuck: nodes.stuck.length,
    },
    stuckOn: nodes.stuck.map((placement) => placement.node),
    unread: head.state === 'waiting' ? (head.wait.unread ?? null) : null,
  };
}

function readHead(facts: Facts, times: Times): Head {
  const { source, inspection, graph, headBuild } = facts;
  if (source.head === null) return { state: 'unknown' };
  const { commit } = source.head;
  if (inspection === null || inspection.commit !== commit) {
    return { state: 'uninspected', request: openOf(facts, commit, 'inspect')[0] ?? null };
  }
  if (inspection.outcome === 'invalid') {
    const problem = inspection.problems[0] ?? 'its manifest is invalid';
    return { state: 'invalid', problem, reason: `the manifest at ${short(commit)} is invalid: ${problem}`, since: inspection.answeredAt };
  }
  const [conflict] = graph.conflicts;
  if (conflict !== undefined) {
    const problem = `${facts.module} exports ${conflict.name}, which ${conflict.module} exported before: one of the two has to change its name`;
    return { state: 'invalid', problem, reason: problem, since: inspection.answeredAt };
  }
  const isJudged = hasVerdict(facts);
  const since = graph.staleSince ?? source.head.since;
  if (graph.cycle !== null) return { state: 'cycle', way: graph.cycle.join(' → '), isBootstrap: false, since };
  const builds = openOf(facts, commit, 'build');
  const request = builds.find((one) => !isUnstarted(one)) ?? builds.find((one) => !isOutdated(one, facts)) ?? builds[0] ?? null;
  if (headBuild !== null && isJudged && facts.again === null && request === null)
    return headBuild.verdict === 'fit' ? { state: 'fit', build: headBuild } : { state: 'failed', build: headBuild };
  const closure = facts.closure ?? '';
  // What runs ends: its closure is what it fetched, and what moved meanwhile makes it stale after, not wrong.
  if (request !== null && !isUnstarted(request)) return { state: 'unbuilt', request, closure };
  if (graph.bootstrap !== null && !isJudged) return { state: 'cycle', way: graph.bootstrap.join(' → '), isBootstrap: true, since };
  const wait = isJudged ? waitForMissing(graph) : waitOf(facts, times);
  if (wait !== null) return { state: 'waiting', wait };
  const isWanted = request !== null && (!isOutdated(request, facts) || isPastCap(facts, times));
  return { state: 'unbuilt', request: isWanted ? request : null, closure };
}

function openOf({ requests }: Facts, commit: string, kind: RequestFacts['kind']): RequestFacts[] {
  return requests.filter((request) => request.kind === kind && request.commit === commit && !request.isStopping);
}

function hasVerdict({ headBuild }: Facts): boolean {
  return headBuild !== null && headBuild.verdict !== 'outstanding';
}

/** What the result line says of the head where no build of it speaks. */
function headPart(head: Head): string | null {
  if (head.state === 'invalid') return `invalid: ${head.problem}`;
  if (head.state === 'cycle') return `${head.isBootstrap ? 'bootstrap cycle' : 'cycle'} ${head.way}`;
  return head.state === 'waiting' ? head.wait.part : null;
}

function decide(facts: Facts, head: Head, nodes: Nodes, times: Times): Decision {
  const standing = standingOf(facts, head, nodes, times);
  const declare = declaring(facts, nodes);
  if (declare !== null && declare.next.kind === 'declare') {
    return standing?.needsPerson === true ? { ...standing, next: declare.next } : declare;
  }
  const pipeline = headWork(facts, head, times);
  if (pipeline !== null) return standing?.needsPerson === true && !pipeline.needsPerson ? { ...standing, next: pipeline.next } : pipeline;
  const blocked = blocking(facts, nodes, times);
  const rest = declare ?? (blocked?.needsPerson === true ? blocked : (tracking(facts, nodes) ?? blocked));
  // Held is a decision about declaring: what is declared is owed all the same.
  if (standing !== null && (rest === null || standing.situation !== 'held')) return rest === null ? standing : { ...standing, next: rest.next };
  if (rest !== null) return rest;
  const [bare] = [...nodes.undeclared, ...nodes.blocked];
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
      reason: head.reason,
      since: head.since,
      needsPerson: true,
    };
  }
  if (head.state === 'cycle') {
    const reason = head.isBootstrap
      ? `${head.way}: each waits for the other to be fit first, and only tests close the circle: take the import out of the tests until one is fit`
      : `${head.way} is a cycle of build edges: none of them is built until one import is gone`;
    return { next: nothing, situation: 'cycle', reason, since: head.since, needsPerson: true };
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
    // One that was never once readable is likely misnamed.
    const needsPerson = trouble.kind === 'absent' || facts.source.head === null || hasLasted(trouble.since, facts.now, times.stuckAfter);
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
  if (head.state === 'waiting') {
    const { on, reason, since, needsPerson } = head.wait;
    return { next: { kind: 'wait', on }, situation: 'waiting', reason: `${staleReason(facts)}; ${reason}`, since, needsPerson };
  }
  if (head.state === 'unbuilt') {
    const next: Next = { kind: 'build', commit: source.commit, closure: head.closure, requestId: head.request?.id ?? null };
    return inFlight(facts, next, head.request, 'building', buildReason(facts, head.request, times), facts.graph.staleSince ?? source.since, times);
  }
  return null;
}

function buildReason(facts: Facts, request: RequestFacts | null, times: Times): string {
  if (facts.again !== null) return `${facts.again.by} asked for another build of ${shortHead(facts)}`;
  const goesOn = hasVerdict(facts) ? null : goesOnReason(facts, times, request?.requestedAt);
  return goesOn === null ? staleReason(facts) : `${staleReason(facts)}; ${goesOn}`;
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

/** The newest answer holds until another try of the same closure has answered. */
function verdictOf(facts: Facts): Verdict {
  return facts.headBuild?.verdict ?? 'outstanding';
}

/**
 * A new head, and an input that moved, cancel what has not started; a new head what runs too, where the module says so. What
 * was asked for before its inputs began to move again is taken back and waits for them; past the cap it stays in the queue.
 */
function unwanted(facts: Facts, head: Head, times: Times): readonly string[] {
  const commit = facts.source.head?.commit;
  if (commit === undefined) return [];
  const stopsRunning = facts.inspection?.commit === commit && facts.inspection.supersede === 'cancel';
  const isBarred = head.state === 'waiting' || head.state === 'cycle' || head.state === 'invalid';
  return facts.requests
    .filter((request) => {
      if (request.isStopping) return false;
      if (!isUnstarted(request)) return stopsRunning && request.commit !== commit;
      if (request.commit !== commit) return true;
      if (request.kind !== 'build') return false;
      return isBarred ? !hasVerdict(facts) : isOutdated(request, facts) && !isPastCap(facts, times);
    })
    .map((request) => request.id);
}

function nextLook(facts: Facts, head: Head, nodes: Nodes, times: Times): Iso | null {
  const deadlines: number[] = head.state === 'waiting' ? waitDeadlines(facts, times).filter((at) => at > Date.parse(facts.now)) : [];
  const after = (iso: Iso, ms: number): void => {
    const at = Date.parse(iso) + ms;
    if (at > Date.parse(facts.now)) deadlines.push(at);
  };
  if (facts.source.trouble !== null) after(facts.source.trouble.since, times.stuckAfter);
  for (const request of facts.requests) after(request.trouble?.since ?? request.requestedAt, times.stuckAfter);
  for (const { blocked } of nodes.blocked) if (blocked !== null) after(blocked.since, times.stuckAfter);
  for (const placement of nodes.outstanding) {
    const from = placement.failing?.since ?? (placement.detail === null ? null : placement.outstandingSince);
    if (from !== null) after(from, times.stuckAfter);
    // A node that went away is said; once it is, nothing is due for it any more.
    if (placement.awaySince === null && placement.outstandingSince !== null) deadlines.push(Date.parse(facts.now) + times.hostAway);
  }
  return deadlines.length === 0 ? null : new Date(Math.min(...deadlines)).toISOString();
}

function shortHead(facts: Facts): string {
  return facts.source.head === null ? 'its head' : short(facts.source.head.commit);
}

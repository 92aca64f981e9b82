/** `tally why`: the facts that a comparison weighed, one sentence each, and what it made of them. */

import type { Comparison, Facts, OpenImport, PlacementFacts, RequestFacts } from '../domain/facts';
import { short } from '../domain/line';
import { minuteOf } from '../domain/times';
import type { UnmadeInstance } from '../inventory';
import type { Unknown } from '../inventory/asking';
import type { WhyAnswer } from '../schema/api';
import type { WhyChain } from '../schema/graphApi';
import { shortDigest } from './whyChain';

interface Beside {
  readonly remedy: string | null;
  readonly comparedAt: string | null;
  readonly chain: readonly WhyChain[];
  /** What of the effective build came out otherwise when it was made again, as far as that is known; null: nothing did. */
  readonly unlike: readonly string[] | null;
  /** What providers cannot make for it. */
  readonly unmade: readonly UnmadeInstance[];
  /** An import of its head that may be of a module which never could be read. */
  readonly unread: Unknown | null;
}

export function whyOf(facts: Facts, comparison: Comparison, { remedy, comparedAt, chain, unlike, unmade, unread }: Beside): WhyAnswer {
  return {
    module: facts.module,
    line: comparison.line,
    situation: comparison.situation,
    next: comparison.next.kind,
    reason: comparison.reason,
    since: comparison.since,
    comparedAt,
    remedy,
    inStep: comparison.inStep,
    chain,
    facts: [
      ...sourceFacts(facts, comparison),
      ...graphFacts(facts),
      ...(unread === null ? [] : [unreadFact(unread)]),
      ...facts.requests.map(requestFact),
      ...buildFacts(facts, comparison),
      ...unlikeFacts(facts, unlike),
      ...decisionFacts(facts, comparison),
      ...facts.placements.map((placement) => placementFact(placement, comparison)),
      ...listed(unmade.map(unmadeFact)),
    ],
  };
}

/** What stands in the reason, which is read just before, is not said again. */
function unlessSaid(text: string | null, { reason }: Comparison): string {
  return text === null || reason === text || reason.endsWith(`: ${text}`) ? '' : `: ${text}`;
}

function sourceFacts(facts: Facts, comparison: Comparison): string[] {
  const { head, trouble, repository, ref } = facts.source;
  const sentences = [
    head === null
      ? `source: ${ref} of ${repository} has not been read yet`
      : `source: ${ref} of ${repository} is at ${short(head.commit)} since ${minuteOf(head.since)}`,
  ];
  if (trouble !== null)
    sentences.push(`source: the last reading gave no head since ${minuteOf(trouble.since)}${unlessSaid(trouble.reason, comparison)}`);
  const { inspection } = facts;
  if (head !== null) {
    if (inspection === null || inspection.commit !== head.commit) sentences.push(`inspected: ${short(head.commit)} not yet`);
    else if (inspection.outcome === 'valid')
      sentences.push(`inspected: the manifest of ${short(head.commit)} is valid, built on ${inspection.platform}`);
    else sentences.push(...inspection.problems.map((problem) => `inspected: ${short(head.commit)} is invalid${unlessSaid(problem, comparison)}`));
  }
  return sentences;
}

const MOST_INPUTS = 10;

/** What is stale, waited for or in the way stands in the chains. */
function graphFacts({ graph }: Facts): string[] {
  const { inputs, openImport } = graph;
  const named = inputs
    .slice(0, MOST_INPUTS)
    .map(
      ({ module, artifact, digest, isTest }) =>
        `${module === artifact ? module : `${module}/${artifact}`} ${shortDigest(digest)}${isTest ? ' (tests only)' : ''}`,
    );
  const more = inputs.length > MOST_INPUTS ? `, and ${inputs.length - MOST_INPUTS} more` : '';
  return [...(inputs.length === 0 ? [] : [`inputs: ${named.join(', ')}${more}`]), ...(openImport === null ? [] : [openImportFact(openImport)])];
}

/** What is waited for because of that import stands in the reason. */
function openImportFact({ name, module, hasOthers, progressAt }: OpenImport): string {
  return `not inspected yet: ${module}${hasOthers ? ' and others' : ''}, which may export ${name}, last progress ${minuteOf(progressAt)}`;
}

const MOST_UNREAD = 3;

/** Nobody waits for those: they are not about to be read. */
function unreadFact({ name, file, line, modules }: Unknown): string {
  const named = modules.slice(0, MOST_UNREAD).map((one) => `${one.module} (${one.is})`);
  const more = modules.length > MOST_UNREAD ? ` and ${modules.length - MOST_UNREAD} more` : '';
  return `not known: nobody exports ${name} (${file}:${line}); ${named.join(', ')}${more} may, and could never be read`;
}

function listed(sentences: readonly string[]): string[] {
  if (sentences.length <= MOST_INPUTS) return [...sentences];
  return [...sentences.slice(0, MOST_INPUTS), `… and ${sentences.length - MOST_INPUTS} more like that`];
}

function requestFact(request: RequestFacts): string {
  const what = `${request.kind === 'inspect' ? 'inspection' : 'build'} ${request.id} of ${short(request.commit)}, attempt ${request.attempt}`;
  const stopping = request.isStopping ? ', told to stop' : '';
  const trouble = request.trouble === null ? '' : `; in the way since ${minuteOf(request.trouble.since)}: ${request.trouble.reason}`;
  if (request.state === 'taken') return `open: ${what}, ${request.takenBy ?? 'a builder'} is at ${request.step ?? 'it'}${stopping}${trouble}`;
  return `open: ${what}, ${request.state} since ${minuteOf(request.requestedAt)}${stopping}${trouble}`;
}

function buildFacts(facts: Facts, comparison: Comparison): string[] {
  const { headBuild, effective, inspection, source, graph } = facts;
  const sentences: string[] = [];
  if (headBuild !== null) {
    const reason = unlessSaid(headBuild.reason, comparison);
    sentences.push(`built: ${short(headBuild.commit)} is ${headBuild.verdict}, try ${headBuild.tryNumber} (${headBuild.id})${reason}`);
  } else if (source.head !== null && inspection?.outcome === 'valid') {
    const stale = graph.staleSince === null ? '' : ` with these inputs, stale since ${minuteOf(graph.staleSince)}`;
    sentences.push(`built: ${short(source.head.commit)} not yet${stale}`);
  }
  sentences.push(effective === null ? 'effective: no build has been fit yet' : `effective: ${short(effective.commit)} (${effective.id})`);
  return sentences;
}

const MOST_FILES = 3;

function unlikeFacts({ module, effective }: Facts, files: readonly string[] | null): string[] {
  if (files === null || effective === null) return [];
  const more = files.length > MOST_FILES ? ` and ${files.length - MOST_FILES} more` : '';
  const how =
    files.length === 0
      ? `it came out otherwise, and what was made first stays: tally build --check ${module} names the files`
      : `${files.slice(0, MOST_FILES).join(', ')}${more} came out otherwise`;
  return [`not reproducible: ${short(effective.commit)} was built again with the same inputs, and ${how}`];
}

function decisionFacts(facts: Facts, comparison: Comparison): string[] {
  const { effective, inspection, effectiveDeclare, meshDeclare, approved, hold, again } = facts;
  // Before the first fit build it is the head's manifest that will say it.
  const own = effective === null ? (inspection?.declare ?? null) : effectiveDeclare;
  const sentences = [`declare: ${own ?? meshDeclare}, said by ${own === null ? 'the mesh' : 'its manifest'}`];
  if (approved !== null) sentences.push(`declare: ${approved.by} said to declare ${approved.buildId}`);
  if (again !== null) sentences.push(`again: ${again.by} asked for another try at ${minuteOf(again.at)}`);
  if (hold !== null) sentences.push(`held: by ${hold.by} since ${minuteOf(hold.at)}${unlessSaid(hold.why, comparison)}`);
  return sentences;
}

function placementFact(placement: PlacementFacts, comparison: Comparison): string {
  const { blocked } = placement;
  const standing = standingFact(placement);
  if (blocked === null) return standing;
  return `${standing}; the effective build is not declared since ${minuteOf(blocked.since)}${unlessSaid(blocked.reason, comparison)}`;
}

function standingFact(placement: PlacementFacts): string {
  const { node, build, applied } = placement;
  const away = placement.awaySince === null ? '' : `; away since ${minuteOf(placement.awaySince)}`;
  if (build === null) return `${node}: assigned, nothing declared yet${away}`;
  if (placement.isApplied) return `${node}: ${short(build.commit)} declared and applied${away}`;
  const since = placement.outstandingSince === null ? '' : ` since ${minuteOf(placement.outstandingSince)}`;
  const has = applied === null ? 'nothing applied yet' : `has ${short(applied.commit)}`;
  const failing =
    placement.failing === null
      ? ''
      : `; failed ${placement.failing.count} times on ${placement.failing.resources.join(', ')}: ${placement.failing.message}`;
  const detail = placement.detail === null || placement.failing !== null ? '' : `; ${placement.detail}`;
  return `${node}: ${short(build.commit)} declared, outstanding${since}, ${has}${failing}${detail}${away}`;
}

function unmadeFact({ instance, provider, providerNode, nodes, resource, message, reportedAt }: UnmadeInstance): string {
  return `not made: ${provider} on ${providerNode} failed to make ${instance} for ${nodes.join(', ')}, as reported at ${minuteOf(reportedAt)}: ${resource} · ${message} (tally node show ${providerNode})`;
}

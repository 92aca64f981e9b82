/** The result line: the one true line that an operator reads, made from facts alone. */
import { staleReason } from './currency';
import type { Facts, PlacementFacts, RequestFacts } from './facts';
import type { Nodes } from './nodes';
import { minuteOf } from './times';
import { short } from './words';

export { short };

/** The line without the module's name. `standing` is what keeps the head from being built: invalid, a cycle, what it waits for. */
export function resultLine(facts: Facts, nodes: Nodes, standing: string | null): string {
  return [sourcePart(facts), ...builtParts(facts, standing), ...unparsedPart(facts), ...nodeParts(facts, nodes), ...holdPart(facts)].join(' · ');
}

function sourcePart(facts: Facts): string {
  const { head, trouble } = facts.source;
  const at = head === null ? 'source not read yet' : `source ${short(head.commit)}`;
  if (trouble === null) return at;
  const word = trouble.kind === 'absent' ? trouble.reason : `unreadable: ${trouble.reason}`;
  return `${head === null ? 'source' : at} (${word}, since ${minuteOf(trouble.since)})`;
}

function builtParts(facts: Facts, standing: string | null): string[] {
  const { head } = facts.source;
  if (head === null) return [];
  const parts: string[] = [];
  if (standing !== null) parts.push(standing);
  const open = facts.requests.find((request) => request.commit === head.commit && !request.isStopping);
  if (open !== undefined) parts.push(requestPart(facts, open));
  const { headBuild, effective } = facts;
  if (headBuild !== null) {
    const tries = headBuild.tryNumber > 1 ? `, ${ordinal(headBuild.tryNumber)} try` : '';
    if (headBuild.verdict === 'fit') parts.push(`built from ${short(headBuild.commit)}`, `fit${tries}`);
    else
      parts.push(
        `failed at ${short(headBuild.commit)}${tries}${headBuild.answeredAt === null ? '' : ` since ${minuteOf(headBuild.answeredAt)}`}`,
        headBuild.reason ?? 'no reason given',
      );
  } else if (standing === null && open === undefined) {
    parts.push(facts.inspection?.commit === head.commit ? unbuiltPart(facts) : 'not inspected yet');
  }
  if (effective !== null && headBuild?.verdict !== 'fit' && facts.placements.some((placement) => placement.build?.id === effective.id)) {
    // Of the same commit, and yet another build: its inputs are what differs.
    parts.push(effective.commit === head.commit ? 'the build with the inputs of before stays declared' : `${short(effective.commit)} stays declared`);
  }
  return parts;
}

function unbuiltPart(facts: Facts): string {
  return facts.effective?.commit === facts.source.head?.commit ? `stale: ${staleReason(facts)}` : 'not built yet';
}

/** Unknown never deletes an edge, and that is said. */
function unparsedPart({ graph }: Facts): string[] {
  const [first] = graph.unparsed;
  if (first === undefined) return [];
  return [`${first}${graph.unparsed.length > 1 ? ` and ${graph.unparsed.length - 1} more files` : ''}: cannot be parsed, its edges of before stay`];
}

function requestPart(facts: Facts, request: RequestFacts): string {
  const verb = request.kind === 'inspect' ? 'inspecting' : 'building';
  if (request.trouble !== null) {
    return `outstanding since ${minuteOf(request.trouble.since)}: ${request.trouble.reason}${request.isSuspect ? ` (suspect after ${request.lostAttempts} attempts)` : ''}`;
  }
  if (request.state === 'taken')
    return `${verb} on ${request.takenBy ?? 'a builder'}${request.takenAt === null ? '' : ` since ${minuteOf(request.takenAt)}`}`;
  const seen = facts.builderSeenAt === null ? 'no builder seen' : `last builder seen ${minuteOf(facts.builderSeenAt)}`;
  return `${verb} waits for a builder since ${minuteOf(request.requestedAt)}, ${seen}`;
}

/** How many nodes an outstanding list names before it counts the rest. */
const NAMED = 3;

function nodeParts(facts: Facts, nodes: Nodes): string[] {
  return [...standingParts(facts, nodes), ...blockedParts(nodes)];
}

function blockedParts({ blocked }: Nodes): string[] {
  const named = blocked.slice(0, NAMED).map((placement) => `${placement.node} is not declared: ${placement.blocked?.reason ?? ''}`);
  return blocked.length > NAMED ? [...named, `${blocked.length - NAMED} more are not declared`] : named;
}

function standingParts(facts: Facts, nodes: Nodes): string[] {
  if (facts.placements.length === 0) return ['on no node'];
  if (nodes.declared.length === 0) return [`declared on 0 of ${facts.placements.length}`];
  const applied = `applied on ${nodes.applied.length}`;
  const missing = nodes.declared.length < facts.placements.length ? ` of ${facts.placements.length}` : '';
  const parts = [`declared on ${nodes.declared.length}${missing}${otherwise(facts, nodes)}`];
  if (nodes.outstanding.length === 0) return [...parts, applied];
  const urgentFirst = [...nodes.stuck, ...nodes.outstanding.filter((placement) => !nodes.stuck.includes(placement))];
  const named = urgentFirst.slice(0, NAMED).map((placement) => nodeWord(placement, nodes));
  const more = urgentFirst.length > NAMED ? [`${urgentFirst.length - NAMED} more`] : [];
  return [...parts, `${applied}, ${nodes.outstanding.length} outstanding (${[...named, ...more].join(', ')})`];
}

/** What is declared of another build than the effective one: held there, or nobody has said to declare that yet. */
function otherwise({ effective }: Facts, { declared }: Nodes): string {
  const others = declared.flatMap(({ build, isSame }) =>
    build === null || effective === null || build.id === effective.id || isSame ? [] : [build],
  );
  const [first] = others;
  if (first === undefined) return '';
  const isOne = others.every((build) => build.commit === first.commit);
  if (!isOne) return ` (${others.length} otherwise)`;
  const what = first.commit === effective?.commit ? 'with the inputs of before' : short(first.commit);
  return others.length === declared.length ? ` (${what})` : ` (${others.length} ${what})`;
}

function nodeWord(placement: PlacementFacts, nodes: Nodes): string {
  const since = placement.outstandingSince === null ? '' : ` since ${minuteOf(placement.outstandingSince)}`;
  if (nodes.stuck.includes(placement))
    return `${placement.node} stuck${placement.failing === null ? '' : ` on ${placement.failing.resources.join(', ')}`}`;
  if (placement.awaySince !== null) return `${placement.node} away since ${minuteOf(placement.awaySince)}`;
  if (placement.failing !== null) return `${placement.node} failing ${placement.failing.resources.join(', ')}${since}`;
  return `${placement.node}${since}`;
}

function holdPart(facts: Facts): string[] {
  if (facts.hold === null) return [];
  return [`held by ${facts.hold.by} since ${minuteOf(facts.hold.at)}: ${facts.hold.why}`];
}

function ordinal(n: number): string {
  const tail = n % 100 >= 11 && n % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th');
  return `${n}${tail}`;
}

/** What is so on the nodes of a module, and what its effective build still owes them. */
import type { Decision, DeclarePolicy, Facts, Iso, PlacementFacts } from './facts';
import { hasLasted, minuteOf, type Times } from './times';
import { short } from './words';

export interface Nodes {
  readonly declared: readonly PlacementFacts[];
  readonly applied: readonly PlacementFacts[];
  readonly outstanding: readonly PlacementFacts[];
  readonly stuck: readonly PlacementFacts[];
  /** Placements that the effective build is not declared on yet. */
  readonly undeclared: readonly PlacementFacts[];
  /** Placements that it cannot be declared on as things are. */
  readonly blocked: readonly PlacementFacts[];
}

export function readNodes(facts: Facts, times: Times): Nodes {
  const declared = facts.placements.filter((placement) => placement.build !== null);
  const outstanding = declared.filter((placement) => !placement.isApplied);
  const others = facts.placements.filter((placement) => placement.build === null || placement.build.id !== facts.effective?.id);
  return {
    declared,
    applied: declared.filter((placement) => placement.isApplied),
    outstanding,
    stuck: outstanding.filter((placement) => isStuck(placement, facts.now, times)),
    undeclared: others.filter((placement) => placement.blocked === null),
    blocked: others.filter((placement) => placement.blocked !== null),
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

/** The fit, effective build that some placements do not name yet. */
export function declaring(facts: Facts, nodes: Nodes): Decision | null {
  const { effective } = facts;
  if (effective === null || effective.verdict !== 'fit' || nodes.undeclared.length === 0 || facts.hold !== null) return null;
  const policy: DeclarePolicy = facts.effectiveDeclare ?? facts.meshDeclare;
  const isFree = policy === 'auto' || facts.approved?.buildId === effective.id;
  // Nobody is asked about what changes nothing.
  const same = nodes.undeclared.filter((placement) => placement.isSame);
  const names = (isFree || same.length === 0 ? nodes.undeclared : same).map((placement) => placement.node);
  if (isFree || same.length > 0) {
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
    reason: `${short(effective.commit)} is fit and waits for a person to declare it on ${names.length === 1 ? names[0] : `${names.length} nodes`}`,
    since: effective.answeredAt,
    needsPerson: true,
  };
}

/** What runs there stays; what is in the way is said, and one that only waits for something to be made comes after what is being applied. */
export function blocking({ effective, now, hold }: Facts, nodes: Nodes, times: Times): Decision | null {
  if (effective === null || hold !== null) return null;
  const found = nodes.blocked.flatMap(({ node, blocked }) => (blocked === null ? [] : [{ node, ...blocked }]));
  const first = found.find((one) => one.needsPerson) ?? found[0];
  if (first === undefined) return null;
  return {
    next: { kind: 'wait', on: first.reason },
    situation: 'waiting',
    reason: `${first.node} is not declared ${short(effective.commit)}: ${first.reason}`,
    since: first.since,
    needsPerson: first.needsPerson || hasLasted(first.since, now, times.stuckAfter),
  };
}

export function tracking(facts: Facts, nodes: Nodes): Decision | null {
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

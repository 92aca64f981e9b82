/** What would happen next, in its order, because of what, and what follows from it along the graph. */
import { orderOf } from '../domain/graph';
import type { NodeStatus, PlanRow, StandingRow } from '../inventory';
import type { EdgeStep, PlannedModule } from '../inventory/asking';
import type { PlanAnswer, PlanStep } from '../schema/graphApi';
import { chainTextOf, grouped, type Hop, hop, start } from './chain';

export interface PlanParts {
  /** Modules whose next is not nothing; with `supposed` these are left out of the answer. */
  readonly rows: readonly PlanRow[];
  /** What builds on a module that moves, at whatever distance. */
  readonly edges: readonly EdgeStep[];
  /** Every module of rows and edges. */
  readonly modules: ReadonlyMap<string, PlannedModule>;
  readonly nodes: readonly NodeStatus[];
  readonly standing: readonly StandingRow[];
  readonly now: Date;
  /** A module whose source is supposed to change. */
  readonly supposed: string | null;
}

/** Work on a head comes before what can be declared already, and that before telling nodes. */
const ORDER: Record<PlanStep['what'], number> = { inspect: 0, build: 1, judge: 2, wait: 3, declare: 4, ask: 5, send: 6 };
/** So many of the modules that a step hangs on are named. */
const MOST_CAUSES = 4;

/** Whose artifacts are about to be others. */
function moving({ rows, modules, supposed }: PlanParts): string[] {
  if (supposed !== null) return [supposed];
  const isStale = (module: string): boolean => modules.get(module)?.staleSince != null;
  return rows.flatMap(({ module, next }) => (next === 'inspect' || next === 'build' || (next === 'wait' && isStale(module)) ? [module] : []));
}

export function planOf(parts: PlanParts): PlanAnswer {
  const { rows, now, supposed } = parts;
  const moves = moving(parts);
  const { cycles, ...order } = orderIn(parts, moves);
  const own = supposed === null ? rows.flatMap((row) => ownSteps(row, parts, order)) : supposedSteps(supposed, parts, order);
  // What lies in a cycle has no place in the order, and nothing follows from it.
  const led = moves.filter((module) => order.levels.has(module));
  const steps = [...own, ...followers(led, parts, order)].sort(
    (a, b) => Number(a.level === 0) - Number(b.level === 0) || a.level - b.level || ORDER[a.what] - ORDER[b.what] || (a.module < b.module ? -1 : 1),
  );
  return {
    now: now.toISOString(),
    supposed,
    steps,
    nodes: supposed === null ? behind(parts.nodes) : [],
    cycles,
    standing: supposed === null ? [...parts.standing] : [],
  };
}

interface Order {
  /** 1 for what waits for nothing of the plan; members of cycles have none. */
  readonly levels: ReadonlyMap<string, number>;
  /** Which of the plan's modules are built before one. */
  readonly after: ReadonlyMap<string, readonly string[]>;
}

/** What is asked for already waits for nothing that only its own move moves: its tests are imported by what it builds on. */
function orderIn({ edges, rows, supposed }: PlanParts, moves: readonly string[]): Order & { readonly cycles: string[][] } {
  const under = new Set(supposed === null ? rows.flatMap(({ module, next }) => (next === 'wait' ? [] : [module])) : []);
  const reached = reachedFrom(moves, edges, () => true);
  const isOwn = ({ module, input }: EdgeStep): boolean =>
    under.has(module) && reached.get(module)?.edge === null && reached.get(input)?.root === module;
  const binding = edges.filter((edge) => !edge.isTest && !isOwn(edge));
  const { order } = orderOf(binding, [...moves, ...edges.map((edge) => edge.module)]);
  const levels = new Map(order.flatMap((level, at) => level.map((module) => [module, at + 1] as const)));
  const after = grouped(
    binding.filter((edge) => levels.has(edge.input)),
    (edge) => edge.module,
  );
  const { cycles } = orderOf(edges.filter((edge) => !edge.isTest));
  return { levels, cycles, after: new Map([...after].map(([module, inputs]) => [module, inputs.map((edge) => edge.input)])) };
}

function ownSteps(row: PlanRow, { modules }: PlanParts, { levels, after }: Order): PlanStep[] {
  const module = modules.get(row.module);
  const step = (what: PlanStep['what'], nodes: readonly string[], level: number): PlanStep => ({
    module: row.module,
    what,
    commit: row.commit,
    because: row.reason,
    nodes: [...nodes],
    level,
    after: level > 1 ? (after.get(row.module) ?? []) : [],
    unless: [],
    afterwards: level > 0 && what !== 'wait' ? afterwardsOf(module) : null,
  });
  switch (row.next) {
    case 'inspect':
    case 'build':
    case 'judge':
      // What is asked for already, or is about to be, waits for nothing any more.
      return [step(row.next, module?.nodes ?? [], 1)];
    case 'declare':
    case 'ask':
      return [step(row.next, row.undeclared, 0)];
    case 'wait':
      return module?.staleSince == null
        ? [step('wait', [], 0)]
        : [step(row.needsPerson ? 'wait' : 'build', module.nodes, levels.get(row.module) ?? 1)];
    case 'track':
      return [step('send', row.outstanding, 0)];
    case 'nothing':
      return [];
  }
}

/** None where it lies in a cycle, which is told beside the steps: no change of it is built. */
function supposedSteps(supposed: string, { modules }: PlanParts, { levels }: Order): PlanStep[] {
  if (!levels.has(supposed)) return [];
  const module = modules.get(supposed);
  const because = 'its source is supposed to change';
  const nodes = [...(module?.nodes ?? [])];
  return [{ module: supposed, what: 'build', commit: null, because, nodes, level: 1, after: [], unless: [], afterwards: afterwardsOf(module) }];
}

function afterwardsOf(module: PlannedModule | undefined): PlanStep['afterwards'] {
  if (module === undefined || module.nodes.length === 0) return null;
  if (module.isHeld) return 'held';
  return module.policy === 'auto' ? 'declare' : 'ask';
}

/**
 * What is built once something it builds on, at whatever distance, has other artifacts: from what moves outwards. What is
 * being built meanwhile ends with what was there when it began, and is built once more.
 */
function followers(moves: readonly string[], { rows, edges, modules, supposed }: PlanParts, { levels, after }: Order): PlanStep[] {
  const building = new Set(supposed === null ? rows.flatMap(({ module, next }) => (next === 'build' ? [module] : [])) : []);
  const reached = reachedFrom(moves, edges, (module) => levels.has(module) && modules.get(module)?.isBuildable === true);
  const isPlanned = (module: string): boolean => reached.has(module);
  const inputs = grouped(
    edges.filter((edge) => isPlanned(edge.input)),
    (edge) => edge.module,
  );
  const causes = new Map<string, readonly string[]>();
  const level = new Map<string, number>();
  const levelOf = (module: string): number => level.get(module) ?? levels.get(module) ?? 1;
  const steps: PlanStep[] = [];
  // Lower levels first, so that what an input hangs on is known before what builds on it.
  for (const [name, { edge, root }] of [...reached].sort(([a], [b]) => (levels.get(a) ?? 0) - (levels.get(b) ?? 0))) {
    const before = (after.get(name) ?? []).filter(isPlanned);
    const overtaken = building.has(name) ? overtaking(name, inputs.get(name) ?? [], reached) : null;
    const way = edge ?? overtaken;
    // Tests order nothing, but what they alone import has moved before they make anything stale.
    const awaited = way?.isTest === true && !before.includes(way.input) ? [...before, way.input] : before;
    level.set(name, Math.max(levelOf(name), ...awaited.map((input) => levelOf(input) + 1)));
    const hangsOn =
      way === null && before.length === 0
        ? []
        : (inputs.get(name) ?? []).flatMap(({ input }) => causes.get(input) ?? (input === name ? [] : (reached.get(input)?.root ?? [])));
    causes.set(name, causesOf([...hangsOn, root]));
    if (way === null) continue;
    const module = modules.get(name);
    steps.push({
      module: name,
      what: 'build',
      commit: module?.head ?? null,
      because: overtaken === null ? chainBack(way, reached) : `${chainBack(way, reached)}, which moves while ${name} is being built`,
      nodes: [...(module?.nodes ?? [])],
      level: levelOf(name),
      after: awaited,
      unless: overtaken === null ? causesOf([...hangsOn, root]) : causesOf(hangsOn),
      afterwards: afterwardsOf(module),
    });
  }
  return steps;
}

function causesOf(modules: readonly string[]): readonly string[] {
  return [...new Set(modules)].sort().slice(0, MOST_CAUSES);
}

/** The nearest way by which a move that is not the module's own reaches what is being built; null where none does. */
function overtaking(module: string, inputs: readonly EdgeStep[], reached: ReadonlyMap<string, Reached>): EdgeStep | null {
  const distance = ({ input }: EdgeStep): number => reached.get(input)?.distance ?? 0;
  const moving = inputs.filter(({ input }) => reached.get(input)?.root !== module);
  return [...moving].sort((a, b) => Number(a.isTest) - Number(b.isTest) || distance(a) - distance(b))[0] ?? null;
}

interface Reached {
  /** By which a move reaches the module first; null for what moves itself. */
  readonly edge: EdgeStep | null;
  /** What moves. */
  readonly root: string;
  /** The edge into `root` at the end of the chain. */
  readonly last: EdgeStep | null;
  readonly distance: number;
}

/** From what moves outwards, nearest first. */
function reachedFrom(moves: readonly string[], edges: readonly EdgeStep[], isBuilt: (module: string) => boolean): Map<string, Reached> {
  const dependants = grouped(edges, (edge) => edge.input);
  const reached = new Map<string, Reached>(moves.map((module) => [module, { edge: null, root: module, last: null, distance: 0 }]));
  // A map is walked in the order of what is added, while it is added to.
  for (const [input, { root, last, distance }] of reached) {
    for (const edge of dependants.get(input) ?? []) {
      if (reached.has(edge.module) || !isBuilt(edge.module)) continue;
      reached.set(edge.module, { edge, root, last: last ?? edge, distance: distance + 1 });
    }
  }
  return reached;
}

/** From an edge back to what moves. */
function chainBack(edge: EdgeStep, reached: ReadonlyMap<string, Reached>): string {
  const { distance, last } = reached.get(edge.input) ?? { distance: 0, last: null };
  let step: EdgeStep | null | undefined = edge;
  const next = (number: number): Hop | undefined => {
    if (number === 0) return start(edge.module);
    if (step == null) return undefined;
    const found = hop(step);
    step = reached.get(step.input)?.edge;
    return found;
  };
  return chainTextOf(distance + 2, next, hop(last ?? edge));
}

function behind(nodes: readonly NodeStatus[]): PlanAnswer['nodes'] {
  return nodes.flatMap((node): Array<PlanAnswer['nodes'][number]> => {
    const { sending } = node;
    if (sending === 'not worked out') {
      return [{ node: node.node, state: sending, reason: node.notWorkedOut?.reason ?? 'not said', since: node.notWorkedOut?.since ?? null }];
    }
    if (sending !== 'out of date' && sending !== 'never told') return [];
    const reason = sending === 'never told' ? 'it has never been sent a declaration' : 'its declaration differs from what it was last sent';
    return [{ node: node.node, state: sending, reason: node.sendTrouble?.reason ?? reason, since: node.sendTrouble?.since ?? null }];
  });
}

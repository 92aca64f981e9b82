/** Chains of edges in words: meshboard ← board-types (board/board.go:7) ← core (types.go:3), each place in the code of the module before it. */
import type { EdgeStep } from '../inventory/asking';

export interface Hop {
  readonly module: string;
  /** Where the module before this one imports it; null for the first, and where the edge is not in force any more. */
  readonly file: string | null;
  readonly line: number | null;
  readonly isTest: boolean;
}

const MOST_HOPS = 6;

export type EdgesByModule = ReadonlyMap<string, readonly EdgeStep[]>;

export function byModule(edges: readonly EdgeStep[]): EdgesByModule {
  return grouped(edges, (edge) => edge.module);
}

export function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** The edge that each module at whatever distance is first reached by, from the nearest outwards. */
export function reachedBy(edges: EdgesByModule, from: string): Map<string, EdgeStep> {
  const via = new Map<string, EdgeStep>();
  const queue = [from];
  for (const module of queue) {
    for (const edge of edges.get(module) ?? []) {
      if (edge.input === from || via.has(edge.input)) continue;
      via.set(edge.input, edge);
      queue.push(edge.input);
    }
  }
  return via;
}

/** From `from` to `to`; only these two where no edge in force leads there. */
export function chainTo(via: ReadonlyMap<string, EdgeStep>, from: string, to: string): Hop[] {
  const hops: Hop[] = [];
  // Each step goes one edge nearer to `from`, and `via` holds each module once.
  for (let edge = via.get(to); edge !== undefined; edge = edge.module === from ? undefined : via.get(edge.module)) hops.unshift(hop(edge));
  return [start(from), ...(hops.length === 0 && to !== from ? [bare(to)] : hops)];
}

/** Along modules that follow one another: a cycle, or the path of something that is waited for. */
export function chainAlong(edges: EdgesByModule, modules: readonly string[]): Hop[] {
  return modules.map((module, at) => {
    const before = modules[at - 1];
    if (before === undefined) return start(module);
    const edge = edges.get(before)?.find((one) => one.input === module);
    return edge === undefined ? bare(module) : hop(edge);
  });
}

export function start(module: string): Hop {
  return { module, file: null, line: null, isTest: false };
}

const bare = start;

export function hop(edge: EdgeStep): Hop {
  const [first] = edge.evidence;
  return { module: edge.input, file: first?.file ?? null, line: first?.line ?? null, isTest: edge.isTest };
}

export function chainText(hops: readonly Hop[]): string {
  return chainTextOf(hops.length, (at) => hops[at], hops.at(-1));
}

/** Of a chain that is long, and need not be made whole: its first hops by number, and its last. */
export function chainTextOf(length: number, hopAt: (at: number) => Hop | undefined, last: Hop | undefined): string {
  const whole = length <= MOST_HOPS;
  const shown = Array.from({ length: whole ? length : MOST_HOPS - 2 }, (_, at) => hopAt(at));
  const texts = shown.flatMap((one) => (one === undefined ? [] : [hopText(one)]));
  return (whole || last === undefined ? texts : [...texts, `… ${length - MOST_HOPS + 1} more`, hopText(last)]).join(' ← ');
}

function hopText({ module, file, line, isTest }: Hop): string {
  if (file === null) return module;
  return `${module} (${file}:${line ?? 0}${isTest ? ', tests only' : ''})`;
}

/**
 * The module graph as a graph and nothing else: what comes before what, what is reached from where, and where it closes
 * on itself. It knows no currency; closure and staleness are src/domain/currency.ts. All O(modules + edges).
 */

/** `module` builds on `input`. */
export interface Edge {
  readonly module: string;
  readonly input: string;
}

export type Neighbours = ReadonlyMap<string, readonly string[]>;

export interface Order {
  /** Levels: everything that a module builds on, cycles apart, stands in an earlier one. Each level is sorted. */
  readonly order: string[][];
  /** One a knot of edges, by name: a → b → a as [a, b, a], the shortest through its first name. Its members stand in no level. */
  readonly cycles: string[][];
}

/** Both directions of a set of edges, each neighbour once. */
export function neighbours(edges: Iterable<Edge>): { readonly inputs: Neighbours; readonly dependants: Neighbours } {
  const inputs = new Map<string, Set<string>>();
  const dependants = new Map<string, Set<string>>();
  const add = (to: Map<string, Set<string>>, key: string, value: string): void => {
    const found = to.get(key);
    if (found === undefined) to.set(key, new Set([value]));
    else found.add(value);
  };
  for (const { module, input } of edges) {
    add(inputs, module, input);
    add(dependants, input, module);
  }
  return { inputs: sorted(inputs), dependants: sorted(dependants) };
}

function sorted(sets: ReadonlyMap<string, ReadonlySet<string>>): Neighbours {
  return new Map([...sets].map(([key, values]) => [key, [...values].sort()]));
}

/** Everything that is reached from `start` in one step or more; `start` itself only where a way leads back to it. */
export function reachable(start: Iterable<string>, next: Neighbours): Set<string> {
  const found = new Set<string>();
  const open = [...start];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const other of next.get(at) ?? []) {
      if (found.has(other)) continue;
      found.add(other);
      open.push(other);
    }
  }
  return found;
}

/** The shortest way of at least one step, both ends included; null when there is none. */
export function pathBetween(from: string, to: string, next: Neighbours): string[] | null {
  const cameFrom = new Map<string, string>();
  let level = [from];
  while (level.length > 0) {
    const after: string[] = [];
    for (const at of level) {
      for (const other of next.get(at) ?? []) {
        if (cameFrom.has(other)) continue;
        cameFrom.set(other, at);
        if (other === to) return backwards(from, to, cameFrom);
        after.push(other);
      }
    }
    level = after;
  }
  return null;
}

function backwards(from: string, to: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const path = [to];
  let at = cameFrom.get(to);
  while (at !== undefined && at !== from) {
    path.push(at);
    at = cameFrom.get(at);
  }
  return [...path, from].reverse();
}

/**
 * In which order modules are built.
 * @param modules those that have no edge and are to be in it all the same.
 */
export function orderOf(edges: Iterable<Edge>, modules: Iterable<string> = []): Order {
  const { inputs, dependants } = neighbours(edges);
  const all = new Set([...modules, ...inputs.keys(), ...dependants.keys()]);
  const knots = knotsOf(all, inputs);
  const knotted = new Set(knots.flat());
  // What builds on a member of a cycle is built with what that member made before, and waits for nothing of it.
  const owed = new Map<string, number>();
  let level: string[] = [];
  for (const module of all) {
    if (knotted.has(module)) continue;
    const count = (inputs.get(module) ?? []).filter((input) => !knotted.has(input)).length;
    owed.set(module, count);
    if (count === 0) level.push(module);
  }
  const order: string[][] = [];
  while (level.length > 0) {
    order.push(level.sort());
    const after: string[] = [];
    for (const module of level) {
      for (const dependant of dependants.get(module) ?? []) {
        const left = (owed.get(dependant) ?? 0) - 1;
        owed.set(dependant, left);
        if (left === 0) after.push(dependant);
      }
    }
    level = after;
  }
  return { order, cycles: cyclesOf(knots, inputs) };
}

function cyclesOf(knots: readonly string[][], inputs: Neighbours): string[][] {
  return knots
    .map((knot) => {
      const [first = ''] = [...knot].sort();
      const within = new Set(knot);
      const inside = new Map(knot.map((module) => [module, (inputs.get(module) ?? []).filter((input) => within.has(input))]));
      return pathBetween(first, first, inside) ?? [first, first];
    })
    .sort((a, b) => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1));
}

/**
 * Sets of modules that each reach all the others (strongly connected; a module that builds on itself is one). Tarjan's
 * algorithm with a stack of its own: a chain of a hundred thousand modules is no reason to overflow the call stack.
 */
function knotsOf(modules: Iterable<string>, next: Neighbours): string[][] {
  const number = new Map<string, number>();
  const low = new Map<string, number>();
  const path: string[] = [];
  const onPath = new Set<string>();
  const knots: string[][] = [];
  const enter = (module: string): { module: string; at: number } => {
    number.set(module, number.size);
    low.set(module, number.size - 1);
    path.push(module);
    onPath.add(module);
    return { module, at: 0 };
  };
  const lower = (module: string, to: number | undefined): void => {
    low.set(module, Math.min(low.get(module) ?? 0, to ?? 0));
  };
  const leave = (module: string): void => {
    if (low.get(module) !== number.get(module)) return;
    const knot = path.splice(path.lastIndexOf(module));
    for (const one of knot) onPath.delete(one);
    if (knot.length > 1 || next.get(module)?.includes(module) === true) knots.push(knot);
  };
  for (const root of modules) {
    if (number.has(root)) continue;
    const calls = [enter(root)];
    for (let call = calls.at(-1); call !== undefined; call = calls.at(-1)) {
      const other = next.get(call.module)?.[call.at];
      call.at += 1;
      if (other === undefined) {
        calls.pop();
        leave(call.module);
        const caller = calls.at(-1);
        if (caller !== undefined) lower(caller.module, low.get(call.module));
      } else if (!number.has(other)) calls.push(enter(other));
      else if (onPath.has(other)) lower(call.module, number.get(other));
    }
  }
  return knots;
}

/**
 * The graph as a tree for a terminal: every module is unfolded once, and referred to where it comes again, so that the
 * lines are as many as modules and edges whatever is shared. What would lie too deep for the width goes on below.
 */
import type { GraphAnswer, GraphEdge } from '../schema/graphApi';
import { colours, cut, plain, wrapped } from './text';

const STEP = 3;
/** So much of the width is left for a name and its place. */
const LEAST_TEXT = 36;
const MOST_ALONE_LINES = 4;

interface Branch {
  readonly module: string;
  readonly edge: GraphEdge | null;
  /** What stands before its children. */
  readonly indent: string;
  readonly twig: string;
  readonly depth: number;
}

export function graphLines(graph: GraphAnswer, width: number, most: number): string[] {
  const { tree, rest } = treeOf(graph, width, most);
  return [
    ...tree,
    ...(rest > 0 ? [`and ${rest} more lines: --all shows them`] : []),
    ...aloneLines(graph, width),
    ...graph.cycles.flatMap((cycle) => wrapped(`cycle: ${cycle.join(' → ')}: none of them is built (tally why ${cycle[0] ?? ''})`, width)),
  ];
}

function treeOf(graph: GraphAnswer, width: number, most: number): { tree: string[]; rest: number } {
  const isInbound = graph.direction === 'inbound';
  const near = (edge: GraphEdge): string => (isInbound ? edge.input : edge.module);
  const far = (edge: GraphEdge): string => (isInbound ? edge.module : edge.input);
  const below = new Map<string, GraphEdge[]>();
  for (const edge of graph.edges) {
    const found = below.get(near(edge));
    if (found === undefined) below.set(near(edge), [edge]);
    else found.push(edge);
  }
  const words = new Map(graph.modules.map((row) => [row.module, row.inStep ? '' : (row.situation ?? 'not compared yet')]));
  const mostDepth = Math.max(2, Math.floor((width - LEAST_TEXT) / STEP));
  const unfolded = new Set<string>();
  const lines: string[] = [];
  let rest = 0;

  /** @returns what is left to do with it */
  function add(branch: Branch, path: readonly Branch[], onPath: ReadonlySet<string>): 'unfold' | 'later' | 'nothing' {
    const { module, edge } = branch;
    const reference = referenceOf(branch, path, onPath);
    if (lines.length < most) lines.push(lineOf(branch, edge, reference, words.get(module) ?? '', width));
    else rest += 1;
    if (reference === '(below)') return 'later';
    return reference === '' && below.has(module) ? 'unfold' : 'nothing';
  }

  function referenceOf({ module, depth, edge }: Branch, path: readonly Branch[], onPath: ReadonlySet<string>): string {
    if (onPath.has(module)) {
      // Tests close no cycle.
      const way = path.slice(path.findIndex((one) => one.module === module) + 1);
      return [edge, ...way.map((one) => one.edge)].some((one) => one?.isTest) ? '(above)' : '(cycle)';
    }
    if (!below.has(module)) return '';
    if (unfolded.has(module)) return '(above)';
    return depth >= mostDepth ? '(below)' : '';
  }

  /** Depth first with a stack of its own: a chain may be as long as there are modules. */
  function unfold(root: string): string[] {
    const later: string[] = [];
    const path: Branch[] = [];
    const onPath = new Set<string>();
    const open: Branch[] = [{ module: root, edge: null, indent: '', twig: '', depth: 0 }];
    for (let branch = open.pop(); branch !== undefined; branch = open.pop()) {
      for (const gone of path.splice(branch.depth)) onPath.delete(gone.module);
      const what = add(branch, path, onPath);
      if (what === 'later') later.push(branch.module);
      if (what !== 'unfold') continue;
      const { module, indent, depth } = branch;
      unfolded.add(module);
      path.push(branch);
      onPath.add(module);
      const edges = below.get(module) ?? [];
      const branches = edges.map((edge, at) => {
        const isLast = at === edges.length - 1;
        return {
          module: far(edge),
          edge,
          twig: `${indent}${isLast ? '└─ ' : '├─ '}`,
          indent: `${indent}${isLast ? '   ' : '│  '}`,
          depth: depth + 1,
        };
      });
      open.push(...branches.reverse());
    }
    return later;
  }

  const queue = graph.module === null ? rootsOf(graph, below, far) : [graph.module];
  // Each module is unfolded once, so that the queue ends.
  for (const root of queue) {
    if (unfolded.has(root)) continue;
    queue.push(...unfold(root));
  }
  return { tree: lines, rest };
}

/** Modules that no other leads to; of a cycle that none leads to its first. */
function rootsOf(graph: GraphAnswer, below: ReadonlyMap<string, readonly GraphEdge[]>, far: (edge: GraphEdge) => string): string[] {
  const led = new Set(graph.edges.map(far));
  const roots = [...below.keys()].filter((module) => !led.has(module)).sort();
  const reached = new Set(roots);
  const reach = (from: string[]): void => {
    for (const module of from) {
      for (const edge of below.get(module) ?? []) {
        if (reached.has(far(edge))) continue;
        reached.add(far(edge));
        from.push(far(edge));
      }
    }
  };
  reach([...roots]);
  for (const module of [...below.keys()].sort()) {
    if (reached.has(module)) continue;
    roots.push(module);
    reached.add(module);
    reach([module]);
  }
  return roots;
}

function lineOf(branch: Branch, edge: GraphEdge | null, reference: string, word: string, width: number): string {
  const [place] = edge?.evidence ?? [];
  const parts = [
    ...(place === undefined ? [] : [`${place.file}:${place.line}`]),
    ...(edge?.isTest === true ? ['tests only'] : []),
    ...(word === '' || `(${word})` === reference ? [] : [word]),
    ...(reference === '' ? [] : [reference]),
  ];
  const name = plain(branch.module);
  // The end says more than the beginning of a long path does.
  const room = width - branch.twig.length - name.length - 2;
  const said = fittedParts(parts.map(plain), room);
  return `${branch.twig}${branch.depth === 0 ? colours.bold(cut(name, width)) : cut(name, width - branch.twig.length)}${said === '' ? '' : `  ${colours.dim(said)}`}`;
}

function fittedParts([first = '', ...others]: readonly string[], room: number): string {
  const tail = others.length === 0 ? '' : ` · ${others.join(' · ')}`;
  const left = room - tail.length;
  if (left < 8) return cut(others.join(' · '), Math.max(1, room));
  return `${first.length <= left ? first : `…${first.slice(first.length - left + 1)}`}${tail}`;
}

/** Modules without any edge stand beside one another. */
function aloneLines(graph: GraphAnswer, width: number): string[] {
  const met = new Set(graph.edges.flatMap((edge) => [edge.module, edge.input]));
  const alone = graph.modules.map((row) => row.module).filter((module) => !met.has(module) && module !== graph.module);
  if (graph.module !== null)
    return graph.edges.length === 0 ? [graph.direction === 'inbound' ? '  no module builds on it' : '  it builds on no module'] : [];
  if (alone.length === 0) return [];
  const lines = wrapped(`without edges: ${alone.join(' · ')}`, width);
  return lines.length <= MOST_ALONE_LINES ? lines : [`without edges: ${alone.length} modules`];
}

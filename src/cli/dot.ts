/** The graph for Graphviz: an arrow from a module to what it builds on, dashed where only tests do, red in a cycle. */
import type { GraphAnswer } from '../schema/graphApi';

export function dotLines(graph: GraphAnswer): string[] {
  const inCycle = new Set(graph.cycles.flatMap((cycle) => cycle.slice(1).map((module, at) => `${cycle[at] ?? ''}\n${module}`)));
  return [
    'digraph tally {',
    '  rankdir=LR;',
    '  node [shape=box];',
    ...graph.modules.map(
      ({ module, situation, inStep }) => `  ${quoted(module)}${inStep ? '' : ` [xlabel=${quoted(situation ?? 'not compared yet')}]`};`,
    ),
    ...graph.edges.map((edge) => {
      const [place] = edge.evidence;
      const attributes = [
        ...(place === undefined ? [] : [`label=${quoted(`${place.file}:${place.line}`)}`]),
        ...(edge.isTest ? ['style=dashed'] : []),
        ...(inCycle.has(`${edge.module}\n${edge.input}`) ? ['color=red'] : []),
      ];
      return `  ${quoted(edge.module)} -> ${quoted(edge.input)} [${attributes.join(', ')}];`;
    }),
    '}',
  ];
}

/** A backslash would begin one of Graphviz's own escapes; nothing else but the quote is special inside of quotes. */
function quoted(text: string): string {
  return `"${text.replace(/\p{Cc}+/gu, ' ').replace(/[\\"]/g, '\\$&')}"`;
}

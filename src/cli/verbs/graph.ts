import type { Command } from 'commander';
import { UsageError } from '../../domain/errors';
import type { GraphAnswer } from '../../schema/graphApi';
import { dotLines } from '../dot';
import { graphLines } from '../graphTree';
import { terminalWidth } from '../text';
import { answer, api, described, IN_STEP, type Json } from '../verb';

interface Options extends Json {
  readonly inbound?: true;
  readonly outbound?: true;
  readonly dot?: true;
  readonly all?: true;
}

/** More is no glance. */
const MOST_LINES = 200;

export function graph(program: Command): void {
  described(program.command('graph [module]'), 'what builds on what, as the imports in the code say, with the place of each', [
    'tally graph                               everything, from what nothing builds on',
    'tally graph kiosk                         what kiosk builds on',
    'tally graph core --inbound                what builds on core',
    'tally graph --dot | dot -Tsvg > graph.svg',
    'tally graph --json | jq ".edges[] | select(.isTest)"',
  ])
    .option('--inbound', 'what builds on it')
    .option('--outbound', 'what it builds on: so it is where neither is said')
    .option('--dot', 'for Graphviz')
    .option('--all', `more than ${MOST_LINES} lines`)
    .action(async (module: string | undefined, { inbound, outbound, dot, all, ...options }: Options) => {
      if (inbound && outbound) throw new UsageError('--inbound or --outbound: say one of the two');
      if (dot && options.json) throw new UsageError('--dot or --json: say one of the two');
      const asked = new URLSearchParams({ ...(module === undefined ? {} : { module }), direction: inbound ? 'inbound' : 'outbound' });
      const graph = await api().get<GraphAnswer>(`graph?${asked}`);
      const most = all ? Number.POSITIVE_INFINITY : MOST_LINES;
      const lines = (): string[] => {
        if (dot) return dotLines(graph);
        if (graph.modules.length === 0) return ['no module is tracked yet: tally module add NAME REPOSITORY'];
        return graphLines(graph, terminalWidth(), most);
      };
      answer(graph, options, lines, IN_STEP);
    });
}

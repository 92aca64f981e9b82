/** What docs/graph.md shows is what the commands print, and its words are those of the code. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chainText, start } from '../../src/api/chain';
import { planOf } from '../../src/api/plan';
import { whyChains } from '../../src/api/whyChain';
import { graphLines } from '../../src/cli/graphTree';
import { planLines } from '../../src/cli/planLines';
import type { PlannedModule } from '../../src/inventory/asking';
import { artifactKind } from '../../src/schema/primitives';
import { edges } from '../support/edges';
import { inStep } from '../support/facts';

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'graph.md'), 'utf8');
const GRAPH = edges('board-types > core types.go:3', 'meshboard > board-types board/board.go:7', 'meshboard > core main.go:12');
const HEAD = '4f2c1a9'.padEnd(40, '0');

function block(begin: string): string[] {
  const [, text = ''] = page.split(`\`\`\`\n${begin}\n`);
  return (text.split('\n```')[0] ?? '').split('\n');
}

test('the tree is what tally graph prints', () => {
  const modules = ['board-types', 'core', 'meshboard'].map((module) => ({ module, situation: 'in step', inStep: true }));
  const graph = { now: '2026-11-29T15:00:00.000Z', module: 'meshboard', direction: 'outbound' as const, modules, edges: GRAPH, cycles: [] };
  expect(graphLines(graph, 80, 100)).toEqual(block('$ tally graph meshboard'));
});

test('the plan is what tally plan --if prints', () => {
  const planned = (module: string, nodes: string[]): [string, PlannedModule] => [
    module,
    { module, head: '77ab310'.padEnd(40, '0'), policy: 'auto', isHeld: false, isBuildable: true, staleSince: null, nodes },
  ];
  const modules = new Map([planned('core', []), planned('board-types', []), planned('meshboard', ['alpha', 'beta'])]);
  const plan = planOf({ rows: [], edges: GRAPH, modules, nodes: [], standing: [], now: new Date(0), supposed: 'core' });
  expect(planLines(plan, 80, false)).toEqual(block('$ tally plan --if core'));
});

test('the chain is what tally why prints', () => {
  const input = (digest: string) => [{ module: 'core', artifact: 'core', digest: `sha256:${digest.padEnd(64, '0')}`, isTest: false }];
  const facts = inStep({ headBuild: null });
  const moved = { ...facts, graph: { ...facts.graph, builtInputs: input('1f2e3d4'), inputs: input('9c8b7a6') } };
  const [chain] = whyChains(moved, GRAPH.slice(0, 2), new Map([[`sha256:${'9c8b7a6'.padEnd(64, '0')}`, HEAD]]));
  expect(page).toContain(`\n${chain?.says ?? 'none'}\n`);
  expect(chainText([start('core')])).toBe('core');
});

test('every kind of artifact that carries names stands in the table', () => {
  const carrying = artifactKind.options.filter((kind) => kind !== 'archive' && kind !== 'file');
  expect(carrying.filter((kind) => !page.includes(`\`${kind}: `))).toEqual([]);
});

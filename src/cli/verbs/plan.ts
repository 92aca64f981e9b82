import type { Command } from 'commander';
import type { PlanAnswer } from '../../schema/api';
import { short } from '../shown';
import { clock, colours, table, terminalWidth, wrapped } from '../text';
import { answer, api, described, IN_STEP, type Json, NOT_IN_STEP } from '../verb';

export function plan(program: Command): void {
  described(program.command('plan'), 'what would be built, in which order and because of what, and what would be declared where', [
    'tally plan',
    'tally plan --json | jq ".steps[].module"',
  ]).action(async (options: Json) => {
    const plan = await api().get<PlanAnswer>('plan');
    const isEmpty = plan.steps.length === 0 && plan.nodes.length === 0;
    answer(
      plan,
      options,
      () => (isEmpty ? ['nothing is to be done: source, built, declared and applied agree'] : lines(plan, terminalWidth())),
      isEmpty ? IN_STEP : NOT_IN_STEP,
    );
  });
}

function lines(plan: PlanAnswer, width: number): string[] {
  const steps = plan.steps.map((step, at) => [
    String(at + 1),
    step.what,
    step.module,
    step.commit === null ? '' : short(step.commit),
    where(step.what, step.nodes),
  ]);
  const rows = table(steps, width);
  const because = plan.steps.map((step) => wrapped(`because ${step.because}`, width - 3).map((line) => `   ${colours.dim(line)}`));
  const nodes = table(
    plan.nodes.map((node) => [node.node, `${node.state}${node.since === null ? '' : ` since ${clock(node.since)}`}`, node.reason]),
    width,
    2,
  );
  return [
    ...rows.flatMap((row, at) => [row, ...(because[at] ?? [])]),
    ...(nodes.length === 0 ? [] : ['', colours.bold('NODES THAT ARE BEHIND'), ...nodes]),
  ];
}

function where(what: PlanAnswer['steps'][number]['what'], nodes: readonly string[]): string {
  const on = nodes.length === 0 ? 'no node' : nodes.join(', ');
  switch (what) {
    case 'inspect':
    case 'build':
    case 'judge':
      return nodes.length === 0 ? 'on no node' : `then on ${on}`;
    case 'ask':
      return `on ${on}, when a person says so`;
    case 'send':
      return `waits for ${on}`;
    default:
      return nodes.length === 0 ? '' : `on ${on}`;
  }
}

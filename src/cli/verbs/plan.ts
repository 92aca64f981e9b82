import type { Command } from 'commander';
import type { PlanAnswer } from '../../schema/graphApi';
import { planLines } from '../planLines';
import { terminalWidth } from '../text';
import { answer, api, described, IN_STEP, type Json, NOT_IN_STEP } from '../verb';

interface Options extends Json {
  readonly if?: string;
  readonly all?: true;
}

export function plan(program: Command): void {
  described(program.command('plan'), 'what would be built, in which order and because of what, and what would be declared where', [
    'tally plan',
    'tally plan --if core                      what a change of core would bring',
    'tally plan --all                          each step of many',
    'tally plan --json | jq ".steps[].module"',
  ])
    .option('--if <module>', 'as if the source of this module had changed, and nothing else')
    .option('--all', 'each step and node, however many there are')
    .action(async ({ if: supposed, all, ...options }: Options) => {
      const plan = await api().get<PlanAnswer>(supposed === undefined ? 'plan' : `plan?${new URLSearchParams({ if: supposed })}`);
      const isEmpty = plan.steps.length === 0 && plan.nodes.length === 0;
      answer(plan, options, () => planLines(plan, terminalWidth(), all === true), isEmpty ? IN_STEP : NOT_IN_STEP);
    });
}

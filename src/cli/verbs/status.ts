import type { Command } from 'commander';
import { UsageError } from '../../domain/errors';
import type { ModuleAnswer, NodeAnswer, StatusAnswer } from '../../schema/api';
import { moduleLines, nodeLines } from '../shown';
import { statusTable } from '../statusTable';
import { terminalWidth } from '../text';
import { answer, api, described, IN_STEP, type Json, NOT_IN_STEP, path } from '../verb';

export function status(program: Command): void {
  described(program.command('status [name]'), 'what is so, most urgent first; of one module or node when it is named', [
    'tally status',
    'tally status kiosk',
    'tally status --json | jq .summary',
    'tally status > /dev/null || echo "not in step"',
  ]).action(async (name: string | undefined, options: Json) => await (name === undefined ? ofAll(options) : ofOne(name, options)));
}

async function ofAll(options: Json): Promise<void> {
  const status = await api().get<StatusAnswer>('status');
  answer(status, options, () => statusTable(status, terminalWidth()), status.inStep ? IN_STEP : NOT_IN_STEP);
}

async function ofOne(name: string, options: Json): Promise<void> {
  const server = api();
  let refusal: unknown;
  try {
    const module = await server.get<ModuleAnswer>(path('modules', name));
    const isSettled = module.row.urgency === 'in step' || module.row.urgency === 'held';
    answer(module, options, () => moduleLines(module, terminalWidth()), isSettled ? IN_STEP : NOT_IN_STEP);
    return;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    refusal = error;
  }
  try {
    const node = await server.get<NodeAnswer>(path('nodes', name));
    const isInStep = node.row.trouble === null && node.row.applied === node.row.placements;
    answer(node, options, () => nodeLines(node, terminalWidth()), isInStep ? IN_STEP : NOT_IN_STEP);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // The suggestion that names something is the better answer.
    throw error.message.includes('did you mean') ? error : refusal;
  }
}

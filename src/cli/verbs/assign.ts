import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, whyOption } from '../verb';

export function assign(program: Command): void {
  described(program.command('assign <module> <node>'), 'place a module on a node', [
    'tally assign kiosk alpha',
    'tally assign notes beta --use postgres',
    'tally assign notes beta --use db=postgres@alpha',
  ])
    .option('--use <provider>', 'which of several providers, as in db=postgres@alpha; may be given again', collect, [])
    .option(...whyOption)
    .action(
      async (module: string, node: string, { why, use, ...options }: Json & { why?: string; use: string[] }) =>
        await done(options, api().post<DoneAnswer>('assign', { module, node, use, why })),
    );
}

function collect(text: string, before: readonly string[]): string[] {
  return [...before, text];
}

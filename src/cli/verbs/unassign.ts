import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, whyOption } from '../verb';

export function unassign(program: Command): void {
  described(program.command('unassign <module> <node>'), 'take a module from a node; its host removes what it made for it', [
    'tally unassign kiosk alpha',
  ])
    .option(...whyOption)
    .action(
      async (module: string, node: string, { why, ...options }: Json & { why?: string }) =>
        await done(options, api().post<DoneAnswer>('unassign', { module, node, why })),
    );
}

import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, whyOption } from '../verb';

export function assign(program: Command): void {
  described(program.command('assign <module> <node>'), 'place a module on a node', ['tally assign kiosk alpha'])
    .option(...whyOption)
    .action(
      async (module: string, node: string, { why, ...options }: Json & { why?: string }) =>
        await done(options, api().post<DoneAnswer>('assign', { module, node, why })),
    );
}

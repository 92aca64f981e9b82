import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, path, whyOption } from '../verb';

export function hold(program: Command): void {
  described(program.command('hold <module>'), 'keep what is declared as it is; it still builds and is judged', ['tally hold kiosk --why "fair week"'])
    .requiredOption(...whyOption)
    .action(
      async (module: string, { why, ...options }: Json & { why: string }) =>
        await done(options, api().post<DoneAnswer>(path('modules', module, 'hold'), { why })),
    );
}

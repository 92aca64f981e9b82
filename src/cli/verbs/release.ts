import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, path, whyOption } from '../verb';

export function release(program: Command): void {
  described(program.command('release <module>'), 'end a hold: what is fit may be declared again', ['tally release kiosk --why "the fair is over"'])
    .requiredOption(...whyOption)
    .action(
      async (module: string, { why, ...options }: Json & { why: string }) =>
        await done(options, api().post<DoneAnswer>(path('modules', module, 'release'), { why })),
    );
}

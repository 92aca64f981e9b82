import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, path, whyOption } from '../verb';

export function cancel(program: Command): void {
  described(program.command('cancel <module> [build]'), 'stop what waits for a builder or runs on one; of one build when it is named', [
    'tally cancel kiosk --why "it hangs"',
    'tally cancel kiosk 9c1f0e2 --why "superseded"',
  ])
    .requiredOption(...whyOption)
    .action(
      async (module: string, build: string | undefined, { why, ...options }: Json & { why: string }) =>
        await done(options, api().post<DoneAnswer>(path('modules', module, 'cancel'), { why, build })),
    );
}

import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, path, whyOption } from '../verb';

export function rollback(program: Command): void {
  described(program.command('rollback <module> [build]'), 'declare an earlier fit build, and hold it until release', [
    'tally rollback kiosk --why "the new menu hides the prices"',
    'tally rollback kiosk 77ab310 --why "the last good one"',
  ])
    .requiredOption(...whyOption)
    .action(
      async (module: string, build: string | undefined, { why, ...options }: Json & { why: string }) =>
        await done(options, api().post<DoneAnswer>(path('modules', module, 'rollback'), { why, build })),
    );
}

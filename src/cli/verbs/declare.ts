import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, path, whyOption } from '../verb';

export function declare(program: Command): void {
  described(
    program.command('declare <module> [build]'),
    'have the nodes hold the effective build, or the fit one that is named; for modules that ask first',
    ['tally declare kiosk --why "seen on the test screen"', 'tally declare kiosk 9c1f0e2 --why "this one"'],
  )
    .requiredOption(...whyOption)
    .action(
      async (module: string, build: string | undefined, { why, ...options }: Json & { why: string }) =>
        await done(options, api().post<DoneAnswer>(path('modules', module, 'declare'), { why, build })),
    );
}

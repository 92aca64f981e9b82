import type { Command } from 'commander';
import { UsageError } from '../../domain/errors';
import type { BehindAnswer, DoneAnswer } from '../../schema/api';
import { checkModule } from '../checked';
import { api, described, done, type Json, path, whyOption } from '../verb';

interface Options extends Json {
  readonly behind?: true;
  readonly again?: true;
  readonly check?: true;
  readonly why?: string;
}

export function build(program: Command): void {
  described(program.command('build [module]'), 'look at a module’s source now and build what has no verdict yet', [
    'tally build kiosk',
    'tally build --behind                      every module whose head has no verdict',
    'tally build kiosk --check                 twice, and which files came out otherwise',
    'tally build kiosk --again --why "the network was down in its test"',
  ])
    .option('--behind', 'every module whose head has no verdict')
    .option('--again', 'one more try of the head, whatever its verdict')
    .option('--check', 'one more try that is built twice, apart; waits, and ends with 1 when anything differs')
    .option(...whyOption)
    .action(async (module: string | undefined, { behind, again, check, why, ...options }: Options) => {
      if (module === undefined && !behind) throw new UsageError('build what? name a module, or say --behind for all that have no verdict');
      if (module !== undefined && behind) throw new UsageError('--behind is about every module: leave the name out');
      if (behind && again) throw new UsageError('--again is about one module: leave --behind out and name it');
      if (behind && check) throw new UsageError('--check is about one module: leave --behind out and name it');
      if (module !== undefined && check) await checkModule(api(), module, why, options);
      else if (module === undefined) await done(options, api().post<BehindAnswer>('build', { behind: true }));
      else await done(options, api().post<DoneAnswer>(path('modules', module, 'build'), { again: again ?? false, why }));
    });
}

import type { Command } from 'commander';
import { UsageError } from '../../domain/errors';
import type { BehindAnswer } from '../../schema/api';
import { api, described, done, type Json, whyOption } from '../verb';

interface Options extends Json {
  readonly behind?: true;
  readonly again?: true;
  readonly why?: string;
}

export function push(program: Command): void {
  described(program.command('push [node]'), 'send nodes what they should hold, now and without waiting for the next try', [
    'tally push gamma',
    'tally push --behind                       every node that was not sent its newest',
    'tally push gamma --again                  also what it holds already',
    'tally push --again                        every node, also what it holds already',
  ])
    .option('--behind', 'every node whose declaration differs from what it was last sent')
    .option('--again', 'also what was sent already')
    .option(...whyOption)
    .action(async (node: string | undefined, { behind, again, why, ...options }: Options) => {
      if (node === undefined && !behind && !again) throw new UsageError('push to whom? name a node, or say --behind for all that are behind');
      if (node !== undefined && behind) throw new UsageError('--behind is about every node: leave the name out');
      if (behind && again) throw new UsageError('--again is also about nodes that are not behind: leave one of the two out');
      await done(options, api().post<BehindAnswer>('push', { node, behind: behind ?? false, again: again ?? false, why }));
    });
}

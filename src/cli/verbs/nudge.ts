import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import { api, described, done, type Json, path } from '../verb';

export function nudge(program: Command): void {
  described(program.command('nudge <module>'), 'read a module’s ref from git again and compare, without waiting a minute', [
    'tally nudge kiosk',
  ]).action(async (module: string, options: Json) => await done(options, api().post<DoneAnswer>(path('modules', module, 'nudge'))));
}

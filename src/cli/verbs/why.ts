import type { Command } from 'commander';
import type { WhyAnswer } from '../../schema/api';
import { clock, colours, plain, terminalWidth, wrapped } from '../text';
import { answer, api, described, IN_STEP, type Json, NOT_IN_STEP, path } from '../verb';

export function why(program: Command): void {
  described(program.command('why <module>'), 'why a module is where it is: the facts that were weighed and what follows from them', [
    'tally why kiosk',
  ]).action(async (module: string, options: Json) => {
    const why = await api().get<WhyAnswer>(path('modules', module, 'why'));
    answer(why, options, () => lines(why, terminalWidth()), why.inStep || why.situation === 'held' ? IN_STEP : NOT_IN_STEP);
  });
}

function lines(why: WhyAnswer, width: number): string[] {
  const since = why.since === null ? '' : ` since ${clock(why.since)}`;
  return [
    ...wrapped(`${why.module}  ${why.line}`, width),
    '',
    `${colours.bold(plain(why.situation ?? 'not compared yet'))}${since}`,
    ...wrapped(`because ${why.reason}`, width),
    ...wrapped(`next: ${why.next ?? 'not known'}`, width),
    // What was asked for just now helps nobody a second time.
    ...(why.remedy === null || why.remedy === `tally why ${why.module}` ? [] : [colours.cyan(`→ ${plain(why.remedy)}`)]),
    ...(why.chain.length === 0 ? [] : ['', ...why.chain.flatMap(({ says }) => wrapped(says, width))]),
    '',
    ...why.facts.flatMap((fact) => wrapped(fact, width - 2).map((line, at) => `${at === 0 ? '· ' : '  '}${line}`)),
  ];
}

import type { Command } from 'commander';
import { EnvironmentError } from '../../domain/errors';
import type { DoctorAnswer } from '../../schema/api';
import { colours, plain, terminalWidth, wrapped } from '../text';
import { answer, api, described, IN_STEP, type Json, NOT_IN_STEP } from '../verb';

type Check = DoctorAnswer['checks'][number];

export function doctor(program: Command): void {
  described(program.command('doctor'), 'look at everything that the mesh leans on, and say what to do where it is not well', ['tally doctor']).action(
    async (options: Json) => {
      const examined = await examine();
      answer(examined, options, () => examined.checks.flatMap((check) => lines(check, terminalWidth())), examined.isWell ? IN_STEP : NOT_IN_STEP);
    },
  );
}

async function examine(): Promise<DoctorAnswer> {
  const server = api();
  const what = 'control plane';
  const began = performance.now();
  try {
    const answered = await server.get<DoctorAnswer>('doctor');
    const says = `answers at ${server.place.url} after ${Math.round(performance.now() - began)} ms`;
    return { ...answered, checks: [{ what, isWell: true, says, remedy: null }, ...answered.checks] };
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error;
    return { isWell: false, checks: [{ what, isWell: false, says: error.message, remedy: 'tally up' }] };
  }
}

const NAME_WIDTH = 17;

function lines(check: Check, width: number): string[] {
  const mark = check.isWell ? colours.green('ok    ') : colours.red('not ok');
  const indent = ' '.repeat(7 + NAME_WIDTH + 1);
  const [first = '', ...rest] = wrapped(check.says, width - indent.length);
  return [
    `${mark} ${check.what.padEnd(NAME_WIDTH)} ${first}`,
    ...rest.map((line) => `${indent}${line}`),
    ...(check.remedy === null ? [] : wrapped(`→ ${plain(check.remedy)}`, width - indent.length).map((line) => `${indent}${colours.cyan(line)}`)),
  ];
}

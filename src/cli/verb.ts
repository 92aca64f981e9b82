/** What every verb shares: `--json`, examples in its help, one line for an error, and its exit status. */
import type { Command } from 'commander';
import type { DoneAnswer } from '../schema/api';
import { type Api, connectApi } from './client';
import { findPlace } from './place';
import { plain } from './text';

export const IN_STEP = 0;
export const NOT_IN_STEP = 1;
export const USAGE = 2;

/** One file a verb gives one of these. */
export type Verb = (program: Command) => void;

export interface Json {
  readonly json?: true;
}

export function api(): Api {
  return connectApi(findPlace(process.env, process.cwd()));
}

/** Adds `--json`, and examples to the help: each a command line and, where it is not plain, what it does. */
export function described(command: Command, what: string, examples: readonly string[]): Command {
  return command
    .description(what)
    .option('--json', 'the answer as JSON')
    .addHelpText('after', `\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`);
}

export function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** The answer as it came, or the lines that a person reads; and the exit status. */
export function answer(value: object, options: Json, lines: () => readonly string[], status: number): void {
  if (options.json) process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
  else print(lines());
  process.exitCode = status;
}

/** A verb that changes something answers one line. */
export async function done(options: Json, asked: Promise<Pick<DoneAnswer, 'says'>>): Promise<void> {
  const said = await asked;
  answer(said, options, () => [plain(said.says)], IN_STEP);
}

export function path(...parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join('/');
}

export const whyOption = ['--why <text>', 'why; kept with your name'] as const;

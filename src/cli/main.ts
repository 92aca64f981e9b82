/** `tally`: finds the verb, loads it and nothing else, and turns whatever goes wrong into one line and an exit status. */
import { Command, CommanderError } from 'commander';
import { EnvironmentError, UsageError } from '../domain/errors';
import { plain } from './text';
import { NOT_IN_STEP, USAGE } from './verb';
import { verbs } from './verbs';

async function main(words: readonly string[]): Promise<void> {
  const program = new Command('tally')
    .description('Does what runs here tally with what is in source?')
    .version((require('../../../package.json') as { version: string }).version, '-V, --version')
    .helpCommand('help [verb]', 'how a verb is used')
    .exitOverride()
    .configureOutput({
      outputError: (text, write) =>
        write(
          `${plain(
            text
              .replace(/^error: /, '')
              .trim()
              .replace(/\n/g, ' '),
          )}\n`,
        ),
    })
    .addHelpText(
      'after',
      '\nExit status: 0 in step, 1 not in step (or no answer), 2 a mistake in what was asked.\nThe control plane is found by TALLY_URL and TALLY_TOKEN, else by client.json in TALLY_HOME, .tally/home or ~/.config/tally.',
    );
  const [wanted] = words;
  const known = wanted === undefined || wanted === 'completion' ? undefined : verbs[wanted];
  // Loading all of them takes longer than most verbs do; help, completion and a suggestion need them.
  for (const load of known === undefined ? Object.values(verbs) : [known]) load()(program);
  await program.parseAsync(['node', 'tally', ...words]);
}

function statusOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  const isUsage = error instanceof UsageError;
  if (isUsage || error instanceof EnvironmentError) process.stderr.write(`${plain(error.message)}\n`);
  else process.stderr.write(`tally itself failed: ${plain(error instanceof Error ? error.message : String(error))}\n`);
  return isUsage ? USAGE : NOT_IN_STEP;
}

// Whoever reads our output may stop reading: `tally log kiosk | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0);
  throw error;
});

main(process.argv.slice(2)).catch((error: unknown) => {
  process.exitCode = statusOf(error);
});

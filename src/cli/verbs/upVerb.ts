import type { Command } from 'commander';
import type { UpOptions } from './up';

export function upVerb(program: Command): void {
  program
    .command('up')
    .description('a mesh on this machine: its servers, a control plane and a builder, until Ctrl-C')
    .option('--demo', 'with three nodes and four modules, and a story that plays once', false)
    .option('--once', 'play the demo to its end with data of its own, check it, stop everything', false)
    .option('--fresh', 'begin anew: what earlier runs left is removed', false)
    .option('--data <folder>', 'where its data lies instead of .tally')
    .addHelpText('after', '\nExamples:\n  $ tally up\n  $ tally up --demo\n  $ tally up --once\n  $ tally up --fresh')
    .action(async (asked: Omit<UpOptions, 'data'> & { data?: string }) => {
      // Brings the servers' clients with it, which no other verb needs.
      const { checkUpOptions, up } = require('./up') as typeof import('./up');
      const options = { ...asked, data: asked.data };
      checkUpOptions(options);
      process.exitCode = await up(options);
    });
}

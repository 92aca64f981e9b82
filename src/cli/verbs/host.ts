import type { Command } from 'commander';
import { startWorker } from '../worker';

export function host(program: Command): void {
  program
    .command('host')
    .description('run the agent of this node: apply what is declared, read it back, report')
    .argument('[arguments...]', 'its own')
    .allowUnknownOption()
    .addHelpText('after', '\nExamples:\n  $ tally host --credentials alpha.json --root / --state /var/lib/tally-host')
    .action(() => startWorker('host'));
}

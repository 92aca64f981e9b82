import type { Command } from 'commander';
import { startWorker } from '../worker';

export function builder(program: Command): void {
  program
    .command('builder')
    .description('run a builder: its settings come from the environment (AMQP_URL, REGISTRY_URL, TALLY_BUILDER_*)')
    .argument('[arguments...]', 'its own')
    .allowUnknownOption()
    .addHelpText('after', '\nExamples:\n  $ TALLY_PLATFORMS=linux-amd64 tally builder')
    .action(() => startWorker('builder'));
}

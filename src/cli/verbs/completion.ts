import { Argument, type Command } from 'commander';
import { UsageError } from '../../domain/errors';
import { bashCompletion, fishCompletion, type Words, zshCompletion } from '../completions';

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

export function completion(program: Command): void {
  program
    .command('completion')
    .description('a script that lets the shell complete verbs, options and names')
    .addArgument(new Argument('<shell>').choices(Object.keys(scripts)))
    .addHelpText(
      'after',
      '\nExamples:\n  $ source <(tally completion bash)\n  $ tally completion zsh > ~/.zsh/_tally\n  $ tally completion fish > ~/.config/fish/completions/tally.fish',
    )
    .action((shell: string) => {
      if (!(shell in scripts)) throw new UsageError(`there is no completion for ${shell}`);
      process.stdout.write(scripts[shell as keyof typeof scripts](wordsOf(program)));
    });
}

/** By what has been typed (`tally`, `tally module add`): what may come next. */
function wordsOf(program: Command): Words[] {
  const all: Words[] = [];
  const visit = (command: Command, typed: string): void => {
    const help = command.createHelp();
    const inner = help.visibleCommands(command).filter((one) => one.name() !== 'help');
    all.push({
      typed,
      commands: inner.map((one) => ({ name: one.name(), description: one.description() })),
      options: help.visibleOptions(command).map((option) => option.long ?? option.short ?? ''),
      names: namesOf(command),
    });
    for (const one of inner) visit(one, typed === '' ? one.name() : `${typed} ${one.name()}`);
  };
  visit(program, '');
  return all;
}

/** What the command's arguments, and those of its options, are named after. */
function namesOf(command: Command): Words['names'] {
  const named = [
    ...command.registeredArguments.map((argument) => argument.name()),
    ...command.options.flatMap((option) => /[<[](\w+)[>\]]$/.exec(option.flags)?.[1] ?? []),
  ];
  return [
    ...(['module', 'name', 'artifact'].some((word) => named.includes(word)) ? (['modules'] as const) : []),
    ...(named.includes('node') || named.includes('name') ? (['nodes'] as const) : []),
  ];
}

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { DoneAnswer, ModuleAnswer, ModuleList, WebhookAnswer } from '../../schema/api';
import { moduleLines, short } from '../shown';
import { colours, table, terminalWidth } from '../text';
import { answer, api, described, done, IN_STEP, type Json, path, whyOption } from '../verb';

export function module_(program: Command): void {
  const group = program.command('module').description('the modules that are tracked: add, list, show, remove, webhook');

  described(group.command('add <name> <repository>'), 'track a ref of a git repository as a module', [
    'tally module add kiosk https://git.example/kiosk.git',
    'tally module add kiosk git@git.example:home/kiosk.git --ref release',
  ])
    .option('--ref <ref>', 'branch or tag', 'main')
    .action(async (module: string, repository: string, { ref, ...options }: Json & { ref: string }) => {
      // A path means the same wherever the control plane runs on this machine.
      const isPath = /^\.{0,2}\//.test(repository) && existsSync(repository);
      await done(options, api().post<DoneAnswer>('modules', { module, repository: isPath ? resolve(repository) : repository, ref }));
    });

  described(group.command('list'), 'every module with its source', ['tally module list']).action(async (options: Json) => {
    const list = await api().get<ModuleList>('modules');
    const rows = list.modules.map((row) => [
      row.module,
      row.situation ?? 'not compared yet',
      row.head === null ? '-' : short(row.head),
      `${row.ref} of ${row.repository}`,
    ]);
    answer(
      list,
      options,
      () => (rows.length === 0 ? ['no module is tracked yet: tally module add NAME REPOSITORY'] : table(rows, terminalWidth())),
      IN_STEP,
    );
  });

  described(group.command('show <module>'), 'everything about one module: nodes, builds, decisions', ['tally module show kiosk']).action(
    async (module: string, options: Json) => {
      const shown = await api().get<ModuleAnswer>(path('modules', module));
      answer(shown, options, () => moduleLines(shown, terminalWidth()), IN_STEP);
    },
  );

  described(group.command('remove <module>'), 'track it no longer; its nodes are told to remove it', [
    'tally module remove kiosk --why "it is now part of greeter"',
  ])
    .requiredOption(...whyOption)
    .action(
      async (module: string, { why, ...options }: Json & { why: string }) =>
        await done(options, api().delete<DoneAnswer>(path('modules', module), { why })),
    );

  described(group.command('webhook <module>'), 'the address and the secret for its repository’s webhook; they only make it faster', [
    'tally module webhook kiosk',
  ]).action(async (module: string, options: Json) => {
    const { addresses, secret, ...rest } = await api().post<WebhookAnswer>(path('modules', module, 'webhook'));
    const rows = [...Object.entries(addresses), ['secret', secret]];
    // Whole, since it is meant to be copied.
    answer(
      { ...rest, addresses, secret },
      options,
      () => [...rows.map(([name = '', value = '']) => `${name.padEnd(8)}${value}`), colours.dim('content type: application/json; events: push')],
      IN_STEP,
    );
  });
}

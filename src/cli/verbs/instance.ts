import type { Command } from 'commander';
import type { DoneAnswer } from '../../schema/api';
import type { InstanceList, InstanceRow } from '../../schema/wiringApi';
import { clock, listed, terminalWidth } from '../text';
import { answer, api, described, done, IN_STEP, type Json, path, whyOption } from '../verb';

export function instance(program: Command): void {
  const group = program.command('instance').description('what providers made for modules: list, show, rotate');

  described(group.command('list'), 'every database, route and the like that a provider makes for a module', ['tally instance list']).action(
    async (options: Json) => {
      const list = await api().get<InstanceList>('instances');
      const rows = list.instances.map((row) => [
        row.name,
        [made(row), holders(row), `${row.wants} by ${row.provider} on ${row.providerNode}`].join(' · '),
      ]);
      answer(
        list,
        options,
        () =>
          rows.length === 0 ? ['nothing is made for a module yet: one that requires an instantiation has it made'] : listed(rows, terminalWidth()),
        IN_STEP,
      );
    },
  );

  described(group.command('show <instance>'), 'what it is made from, who holds it, and how old its secrets are', [
    'tally instance show notes-db',
  ]).action(async (name: string, options: Json) => {
    const row = await api().get<InstanceRow>(path('instances', name));
    answer(row, options, () => instanceLines(row), IN_STEP);
  });

  described(group.command('rotate <instance>'), 'give it new secrets; the provider has them first, then whoever holds it', [
    'tally instance rotate notes-db --why "a laptop was lost"',
  ])
    .requiredOption(...whyOption)
    .action(
      async (name: string, { why, ...options }: Json & { why: string }) =>
        await done(options, api().post<DoneAnswer>(path('instances', name, 'rotate'), { why })),
    );
}

function holders({ consumer, binding, nodes }: InstanceRow): string {
  return `${binding} of ${consumer}${nodes.length === 0 ? '' : ` on ${nodes.join(', ')}`}`;
}

function made({ isMade, madeAt }: InstanceRow): string {
  if (madeAt === null) return 'not made yet';
  return isMade ? `made ${clock(madeAt)}` : `made ${clock(madeAt)}, a change is outstanding`;
}

function instanceLines(row: InstanceRow): string[] {
  const facts = [
    ['for', holders(row)],
    ['by', `${row.provider} on ${row.providerNode}`],
    ['made', made(row)],
    ...Object.entries(row.parameters).map(([name, value]) => [`with ${name}`, value]),
    ...row.secrets.map(({ name, version, madeAt, holders: held }) => [
      `secret ${name}`,
      `version ${version} of ${clock(madeAt)} · ${held.map((one) => `${one.node} ${one.isApplied ? 'has' : 'is owed'} version ${one.version}`).join(' · ') || 'held nowhere yet'}`,
    ]),
  ];
  return [`${row.name}  ${row.wants}`, '', ...listed(facts, terminalWidth())];
}

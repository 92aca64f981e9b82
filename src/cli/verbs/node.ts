import type { Command } from 'commander';
import { UsageError } from '../../domain/errors';
import type { AddedNodeAnswer, DoneAnswer, NodeAnswer, NodeList } from '../../schema/api';
import { nodeLines } from '../shown';
import { clock, plain, table, terminalWidth } from '../text';
import { answer, api, described, done, IN_STEP, type Json, path, whyOption } from '../verb';

type Facts = Readonly<Record<string, string>>;

export function node(program: Command): void {
  const group = program.command('node').description('the machines: add, list, show, set, trust, renew, remove');

  described(group.command('add <name>'), 'make a node’s account on the broker, and say where its credentials lie', [
    'tally node add alpha',
    'tally node add alpha --set meshboard.port=8081 --site shop',
    'tally node add alpha --address 10.0.0.7',
  ])
    .option('--set <key=value>', 'a fact that manifests may use; may be given again', collect, {})
    .option('--site <site>', 'the place where it stands', 'home')
    .option('--address <address>', 'where the other nodes reach it; the fact `address`')
    .action(async (name: string, { set, site, address, ...options }: Json & { set: Facts; site: string; address?: string }) => {
      const facts = address === undefined ? set : { ...set, address };
      const added = await api().post<AddedNodeAnswer>('nodes', { node: name, site, facts });
      answer(added, options, () => [plain(added.says), `there: ${plain(added.next)}`], IN_STEP);
    });

  described(group.command('list'), 'every node with what it was sent and has applied', ['tally node list']).action(async (options: Json) => {
    const list = await api().get<NodeList>('nodes');
    const rows = list.nodes.map((row) => [
      row.node,
      row.site,
      row.presence === 'away' && row.lastBeatAt !== null ? `away since ${clock(row.lastBeatAt)}` : row.presence,
      row.sending,
      `${row.applied} of ${row.placements} applied${row.trouble === null ? '' : ` · ${row.trouble.reason}`}`,
    ]);
    answer(list, options, () => (rows.length === 0 ? ['there is no node yet: tally node add NAME'] : table(rows, terminalWidth())), IN_STEP);
  });

  described(group.command('show <node>'), 'everything about one node: what it was sent, holds and reported', ['tally node show gamma']).action(
    async (name: string, options: Json) => {
      const shown = await api().get<NodeAnswer>(path('nodes', name));
      answer(shown, options, () => nodeLines(shown, terminalWidth()), IN_STEP);
    },
  );

  described(group.command('set <node> <facts...>'), 'change facts of a node; an empty value takes one away', [
    'tally node set alpha meshboard.port=8082',
    'tally node set alpha colour=',
  ]).action(async (name: string, facts: string[], options: Json) => {
    const body = { facts: facts.reduce<Facts>((before, fact) => collect(fact, before), {}) };
    await done(options, api().post<DoneAnswer>(path('nodes', name, 'facts'), body));
  });

  for (const [verb, what, example] of [
    ['trust', 'take the other key that a node came with: its host was installed anew', 'tally node trust gamma --why "new disk"'],
    [
      'renew',
      'give a node a new account, where the broker lost it or somebody else has it',
      'tally node renew gamma --why "the broker was set up anew"',
    ],
  ] as const) {
    described(group.command(`${verb} <node>`), what, [example])
      .requiredOption(...whyOption)
      .action(
        async (name: string, { why, ...options }: Json & { why: string }) =>
          await done(options, api().post<DoneAnswer>(path('nodes', name, verb), { why })),
      );
  }

  described(group.command('remove <node>'), 'forget a node and its account; what runs there goes on running', [
    'tally node remove gamma --why "it was sold"',
  ])
    .requiredOption(...whyOption)
    .action(
      async (name: string, { why, ...options }: Json & { why: string }) =>
        await done(options, api().delete<DoneAnswer>(path('nodes', name), { why })),
    );
}

function collect(text: string, before: Facts): Facts {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`${text} is no fact: say KEY=VALUE, as in meshboard.port=8081`);
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

import { type Command, Option } from 'commander';
import { UsageError } from '../../domain/errors';
import type { DoneAnswer, MeshAnswer } from '../../schema/api';
import { name as nameForm } from '../../schema/primitives';
import { clock, plain } from '../text';
import { answer, api, described, done, IN_STEP, type Json, whyOption } from '../verb';

/** Token and builder must be there before anyone can ask the API: they speak to the servers themselves, with the control plane's own environment. */
export function mesh(program: Command): void {
  const group = program
    .command('mesh')
    .description('what the whole mesh needs: default; and where its control plane runs: token, builder')
    .addHelpText('after', '\nToken and builder need the environment of the control plane: DATABASE_URL for the one, AMQP_URL for the other.');

  described(group.command('token <name>'), 'a token for a person or a program, shown once; one that the name had is void', [
    'tally mesh token ada',
  ]).action(async (name: string, options: Json) => {
    const token = await withStore((db, { addToken }) => addToken(db, checked(name)));
    answer({ name, token }, options, () => [`${name} is whoever says this token: TALLY_TOKEN=${token}`], IN_STEP);
  });

  described(
    group.command('default [policy]'),
    'whether fit builds of modules that do not say so themselves declare themselves (auto) or wait (ask); without one, what is so',
    ['tally mesh default', 'tally mesh default auto --why "the tests are good enough"'],
  )
    .option(...whyOption)
    .action(async (policy: string | undefined, { why, ...options }: Json & { why?: string }) => {
      if (policy === undefined) return await showDefault(options);
      if (policy !== 'auto' && policy !== 'ask') throw new UsageError(`"${policy}" is no default: say auto or ask`);
      await done(options, api().post<DoneAnswer>('mesh/default', { policy, why }));
    });

  described(group.command('builder <name>'), 'make or renew a builder’s account on the broker, and say the AMQP_URL that it starts with', [
    'tally mesh builder shed',
    'tally mesh builder shed --host broker.example',
  ])
    .addOption(new Option('--host <host>', 'the name by which the builder reaches the broker; as here where it is not given'))
    .action(async (name: string, { host, ...options }: Json & { host?: string }) => {
      const { ensureBuilderAccount, findManagement } = require('../../link') as typeof import('../../link');
      const amqpUrl = variable('AMQP_URL');
      const { user, password } = await ensureBuilderAccount(
        await findManagement(amqpUrl, process.env.AMQP_MANAGEMENT_URL || undefined),
        checked(name),
      );
      const url = new URL(amqpUrl);
      url.username = encodeURIComponent(user);
      url.password = encodeURIComponent(password);
      if (host !== undefined) url.hostname = host;
      answer({ name, amqpUrl: url.href }, options, () => [`TALLY_BUILDER_NAME=${name}`, `AMQP_URL=${url.href}`], IN_STEP);
    });
}

async function showDefault(options: Json): Promise<void> {
  const { mesh, declareDefault, said } = await api().get<MeshAnswer>('mesh');
  const by = said === null ? ', until somebody says otherwise' : `, said by ${said.who} at ${clock(said.at)}: ${said.why}`;
  answer({ mesh, declareDefault, said }, options, () => [plain(`modules that do not say otherwise: ${declareDefault}${by}`)], IN_STEP);
}

type Inventory = typeof import('../../inventory');

async function withStore<T>(work: (db: ReturnType<Inventory['openInventory']>, inventory: Inventory) => Promise<T>): Promise<T> {
  const inventory = require('../../inventory') as Inventory;
  const url = variable('DATABASE_URL');
  await inventory.migrate(url);
  const db = inventory.openInventory(url, { max: 1 });
  try {
    return await work(db, inventory);
  } finally {
    await db.close();
  }
}

function variable(name: 'DATABASE_URL' | 'AMQP_URL'): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new UsageError(`${name} is not set: run this where the control plane runs, with its environment`);
  return value;
}

function checked(name: string): string {
  if (!nameForm.safeParse(name).success) throw new UsageError(`"${name}" is no name: use lower-case letters, digits and dashes, at most 63`);
  return name;
}

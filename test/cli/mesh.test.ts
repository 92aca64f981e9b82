/** What an operator sets up before anyone has a token: real store and broker, and the command as it is typed. */
import { connect } from 'amqplib';
import { type Db, getMesh, openInventory, whoIs } from '../../src/inventory';
import { startApi } from '../support/api';
import { asking, type Ran, runTally } from '../support/command';
import { freshDatabase, freshVhost } from '../support/servers';

let databaseUrl: string;
let db: Db;

beforeAll(async () => {
  databaseUrl = await freshDatabase();
  db = openInventory(databaseUrl, { max: 1 });
});

afterAll(async () => {
  await db.close();
});

const tally = (words: readonly string[], env: Record<string, string>): Promise<Ran> => runTally(words, { env });

test('the first token of a new mesh is made beside its store, and a second one voids it', async () => {
  const first = await tally(['mesh', 'token', 'ada', '--json'], { DATABASE_URL: databaseUrl });
  expect(first.status).toBe(0);
  const { token } = JSON.parse(first.out) as { token: string };
  expect(await whoIs(db, token)).toBe('ada');
  const second = await tally(['mesh', 'token', 'ada'], { DATABASE_URL: databaseUrl });
  expect(await whoIs(db, token)).toBeNull();
  expect(await whoIs(db, second.out.trim().split('=')[1] ?? '')).toBe('ada');
});

test('the mesh asks before it declares until an operator says otherwise, by the API and without the store', async () => {
  const api = await startApi();
  try {
    const env = asking(api);
    expect(await tally(['mesh', 'default'], env)).toEqual({
      status: 0,
      out: 'modules that do not say otherwise: ask, until somebody says otherwise\n',
      err: '',
    });
    const said = await tally(['mesh', 'default', 'auto', '--why', 'the tests are good'], env);
    expect(said).toEqual({ status: 0, out: 'modules that do not say otherwise: auto: a fit build declares itself\n', err: '' });
    expect((await getMesh(api.db)).declareDefault).toBe('auto');
    expect((await tally(['mesh', 'default'], env)).out).toMatch(
      /^modules that do not say otherwise: auto, said by ada at \d\d:\d\d: the tests are good\n$/,
    );
    const refused = await tally(['mesh', 'default', 'always'], env);
    expect(refused).toEqual({ status: 2, out: '', err: '"always" is no default: say auto or ask\n' });
  } finally {
    await api.close();
  }
});

test('a builder gets an account of its own that can connect', async () => {
  const { amqpUrl, managementUrl } = await freshVhost();
  const made = await tally(['mesh', 'builder', 'shed'], { AMQP_URL: amqpUrl, AMQP_MANAGEMENT_URL: managementUrl });
  expect(made).toMatchObject({ status: 0, err: '' });
  const url = /^AMQP_URL=(.*)$/m.exec(made.out)?.[1] ?? '';
  expect(new URL(url).username).toMatch(/^builder-shed/);
  await (await connect(url)).close();
});

test('without the environment of the control plane each says what is missing', async () => {
  const { status, err } = await tally(['mesh', 'token', 'ada'], {});
  expect({ status, err }).toEqual({ status: 2, err: 'DATABASE_URL is not set: run this where the control plane runs, with its environment\n' });
});

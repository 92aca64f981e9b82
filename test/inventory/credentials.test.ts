import {
  type Db,
  dropPastVersions,
  ensureCredentials,
  nodeDetail,
  nodesToSend,
  recordNodeBeats,
  recordRenewal,
  recordReports,
  rotateCredentials,
  trustKey,
} from '../../src/inventory';
import { credentialHolders, sealFor } from '../../src/inventory/credentials';
import { rotateInstance } from '../../src/inventory/instances';
import { generateSealKeyPair, openOnNode } from '../../src/link';
import type { SealedSecret } from '../../src/schema/declaration';
import { beat, declared, deriving, openStore, report, send, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const { sealing } = deriving;
const why = { who: 'ada', why: 'test' };
const keys = new Map<string, ReturnType<typeof generateSealKeyPair>>();
let instances = 0;

const READS = { versions: [1], shapes: ['file'], features: ['secrets'] };
const holding = (path: string, content: string) => ({ file: { path, mode: '0600', content } });

/** A node that has shown its keys. */
async function seen(name: string): Promise<void> {
  const key = generateSealKeyPair();
  keys.set(name, key);
  await recordNodeBeats(db, [beat(name, { sealKey: key.publicKey, reads: READS })], tick(), times);
}

/** An instance between a module on one node and a module on another, both of which have shown a key. */
async function instance(): Promise<{ owner: string; provider: string; consumer: string }> {
  instances += 1;
  const owner = `i${instances}`;
  const gives = { password: '${secret.password}' };
  const resources = [holding('/db/${instance.name}', '${secret.password}')];
  const provider = await declared(db, { provides: [{ instantiation: 'database', secrets: ['password'], resources, gives }] });
  const consumer = await declared(db, { resources: [holding('/etc/db', '${bind.db.password}')] });
  for (const { on } of [provider, consumer]) await seen(on);
  await db.query(`insert into instance (id, name, provider, provider_node, wants, consumer, binding) values ($1, $1, $2, $3, 'database', $4, 'db')`, [
    owner,
    provider.name,
    provider.on,
    consumer.name,
  ]);
  await db.query(
    `insert into binding (module, node, kind, name, wants, provider, provider_node, instance_id) values ($4, $5, 'instantiation', 'db', 'database', $2, $3, $1)`,
    [owner, provider.name, provider.on, consumer.name, consumer.on],
  );
  await db.transaction((tx) => ensureCredentials(tx, sealing, [{ owner, name: 'password' }]));
  return { owner, provider: provider.on, consumer: consumer.on };
}

async function sealKeyOf(node: string): Promise<string | null> {
  return (await nodeDetail(db, node))?.sealKey ?? null;
}

async function copies(node: string, ...wanted: Array<{ owner: string; name?: string; version?: number }>) {
  const sealKey = await sealKeyOf(node);
  return db.transaction((tx) =>
    sealFor(
      tx,
      sealing,
      { mesh: 'home', node, sealKey },
      wanted.map((one) => ({ name: 'password', ...one })),
    ),
  );
}

async function opened(node: string, secret: Awaited<ReturnType<typeof copies>>[number] | undefined): Promise<string> {
  if (secret == null) throw new Error('nothing was sealed');
  const { credential, version, sealed } = secret;
  return openOnNode(keys.get(node)?.privateKey ?? '', sealed, { mesh: 'home', node, credential, version });
}

const count = async (sql: string, values: unknown[]): Promise<number> =>
  (await db.query<{ count: number }>(`select count(*)::int as count from ${sql}`, values))[0]?.count ?? 0;

/** The node is sent what is declared on it and says that all of it holds. The one secret of what it was sent; null: nothing was. */
async function apply(node: string, number: number): Promise<SealedSecret | null> {
  const sent = await send(db, node);
  if (sent === null) return null;
  await recordReports(db, [report(node, number, sent)], tick());
  const [row] = await db.query<{ secret: SealedSecret | null }>(
    `select jsonb_path_query_first(content, '$.resources[*].spec.secrets.*') as secret from declaration where node = $1 and sequence = $2`,
    [node, sent.sequence],
  );
  return row?.secret ?? null;
}

describe('a credential', () => {
  it('is made once, and the provider and the consumer open the same', async () => {
    const { owner, provider, consumer } = await instance();
    await db.transaction((tx) =>
      ensureCredentials(tx, sealing, [
        { owner, name: 'password' },
        { owner, name: 'password' },
        { owner, name: 'token' },
      ]),
    );
    expect(await count('credential where owner = $1', [owner])).toBe(2);
    const [password, token] = await copies(provider, { owner }, { owner, name: 'token' });
    expect(password).toMatchObject({ credential: `${owner}/password`, version: 1 });
    const text = await opened(provider, password);
    expect(Buffer.from(text, 'base64url')).toHaveLength(32);
    expect(await opened(provider, token)).not.toBe(text);
    expect(await opened(consumer, (await copies(consumer, { owner }))[0])).toBe(text);
  });

  it('is sealed once for a node, so that deriving again gives the same; and what is not wanted any more goes', async () => {
    const [one, two] = [await instance(), await instance()];
    const first = await copies(one.consumer, one, two);
    expect(await copies(one.consumer, two, one)).toEqual([...first].reverse());
    expect(await copies(one.consumer, two)).toEqual([first[1]]);
    expect(await count('sealed_copy where node = $1', [one.consumer])).toBe(1);
    expect(await copies(one.consumer)).toEqual([]);
    expect(await count('sealed_copy where node = $1', [one.consumer])).toBe(0);
    expect((await copies(one.consumer, one))[0]?.sealed).not.toBe(first[0]?.sealed);
  });

  it('is one copy for a node that wants it twice, as provider and as holder', async () => {
    const { owner, consumer } = await instance();
    const [first, second] = await copies(consumer, { owner }, { owner, version: 1 });
    expect(second).toEqual(first);
    expect(await copies(consumer, { owner, version: 1 }, { owner })).toEqual([first, first]);
  });

  it('is not sealed for a node that has shown no key, and one that nobody made is not there', async () => {
    const { owner, consumer } = await instance();
    const { on } = await declared(db);
    expect(await copies(on, { owner })).toEqual([null]);
    expect(await copies(consumer, { owner, name: 'nobody' }, { owner })).toMatchObject([null, { version: 1 }]);
  });

  it('goes with its instance', async () => {
    const { owner, provider } = await instance();
    await copies(provider, { owner });
    await db.query('delete from instance where id = $1', [owner]);
    expect(await count('credential where owner = $1', [owner])).toBe(0);
    expect(await count('sealed_copy where owner = $1', [owner])).toBe(0);
  });

  it('stands in no table in the clear', async () => {
    const { owner, provider } = await instance();
    const text = await opened(provider, (await copies(provider, { owner }))[0]);
    const tables = await db.query<{ name: string }>("select tablename as name from pg_tables where schemaname = 'public'");
    for (const { name } of tables) expect(await count(`"${name}" t where t::text like '%' || $1 || '%'`, [text])).toBe(0);
    expect(await count(`"credential" t where t::text like '%' || $1 || '%'`, [owner])).toBeGreaterThan(0);
  });
});

describe('rotating', () => {
  it('makes a new version, tells every node that holds one, and its holders when it is in force', async () => {
    const { owner, provider, consumer } = await instance();
    const before = await opened(provider, await apply(provider, 1));
    expect(await opened(consumer, await apply(consumer, 1))).toBe(before);
    const idle = await nodesToSend(db, 1_000, tick());
    expect(idle.filter((on) => on === provider || on === consumer)).toEqual([]);
    expect(await rotateInstance(db, sealing, owner, why)).toEqual([consumer, provider].sort());
    expect(await nodesToSend(db, 1_000, tick())).toEqual(expect.arrayContaining([provider, consumer]));
    expect(await apply(consumer, 2)).toBeNull();
    const next = await apply(provider, 2);
    expect(next?.version).toBe(2);
    const after = await opened(provider, next);
    expect(after).not.toBe(before);
    expect(await opened(consumer, await apply(consumer, 2))).toBe(after);
  });

  it('gives the version that is asked for, as long as it is there', async () => {
    const { owner, provider } = await instance();
    await db.transaction((tx) => rotateCredentials(tx, sealing, [owner]));
    expect(await copies(provider, { owner }, { owner, version: 1 })).toMatchObject([{ version: 2 }, { version: 1 }]);
  });

  it('is one version a call, also for two at once, and what an instance gains has the version of its others', async () => {
    const { owner, provider } = await instance();
    await Promise.all([1, 2, 3].map(() => db.transaction((tx) => rotateCredentials(tx, sealing, [owner]))));
    expect(await copies(provider, { owner })).toMatchObject([{ version: 4 }]);
    await db.transaction((tx) => ensureCredentials(tx, sealing, [{ owner, name: 'token' }]));
    expect(await copies(provider, { owner, name: 'token' }, { owner, name: 'token', version: 1 })).toMatchObject([{ version: 4 }, { version: 4 }]);
  });

  it('forgets a past version when the provider has made the next and every holder has applied it, and not before', async () => {
    const { owner, provider, consumer } = await instance();
    await apply(provider, 1);
    await apply(consumer, 1);
    await rotateInstance(db, sealing, owner, why);
    const versions = async (): Promise<number[]> => {
      await dropPastVersions(db);
      return (await db.query<{ version: number }>('select version from credential where owner = $1 order by version', [owner])).map(
        (row) => row.version,
      );
    };
    const holders = async () => (await credentialHolders(db, [owner]))[0]?.holders;
    expect(await versions()).toEqual([1, 2]);
    await apply(provider, 2);
    expect(await versions()).toEqual([1, 2]);
    expect(await holders()).toEqual(expect.arrayContaining([{ node: consumer, version: 1, isApplied: false }]));
    const sent = await send(db, consumer);
    expect(await versions()).toEqual([1, 2]);
    expect(await holders()).toEqual(expect.arrayContaining([{ node: consumer, version: 2, isApplied: false }]));
    if (sent === null) throw new Error('not sent');
    await recordReports(db, [report(consumer, 2, sent)], tick());
    expect(await holders()).toEqual([consumer, provider].sort().map((node) => ({ node, version: 2, isApplied: true })));
    expect(await versions()).toEqual([2]);
  });
});

describe('the key that a node has secrets sealed to', () => {
  it('is taken from the first beat that shows one, and its node is derived anew', async () => {
    const { on } = await declared(db);
    await recordNodeBeats(db, [beat(on)], tick(), times);
    await send(db, on);
    expect(await sealKeyOf(on)).toBeNull();
    expect(await nodesToSend(db, 1_000, tick())).not.toContain(on);
    await seen(on);
    expect(await sealKeyOf(on)).toBe(keys.get(on)?.publicKey);
    expect(await nodesToSend(db, 1_000, tick())).toContain(on);
    // A host of before, put back for a while, takes nothing away.
    await recordNodeBeats(db, [beat(on)], tick(), times);
    expect(await sealKeyOf(on)).toBe(keys.get(on)?.publicKey);
  });

  it('is not exchanged by a beat: another one is refused until it is trusted, and then everything is sealed anew', async () => {
    const { owner, consumer } = await instance();
    const [old] = await copies(consumer, { owner });
    const text = await opened(consumer, old);
    const key = generateSealKeyPair();
    const other = beat(consumer, { sealKey: key.publicKey, reads: READS, epoch: 'e2' });
    expect(await recordNodeBeats(db, [other], tick(), times)).toEqual({ refused: [consumer] });
    expect(await sealKeyOf(consumer)).toBe(keys.get(consumer)?.publicKey);
    expect(await copies(consumer, { owner })).toEqual([old]);
    await trustKey(db, consumer, why);
    expect(await sealKeyOf(consumer)).toBe(key.publicKey);
    expect(await nodesToSend(db, 1_000, tick())).toContain(consumer);
    expect(await recordNodeBeats(db, [other], tick(), times)).toEqual({ refused: [] });
    keys.set(consumer, key);
    const [anew] = await copies(consumer, { owner });
    expect(anew?.version).toBe(1);
    expect(await opened(consumer, anew)).toBe(text);
    expect(await count('sealed_copy where node = $1', [consumer])).toBe(1);
  });

  it('of a stranger is forgotten when the node gets new credentials', async () => {
    const { on } = await declared(db);
    await seen(on);
    await recordNodeBeats(db, [beat(on, { publicKey: 'stranger', sealKey: generateSealKeyPair().publicKey })], tick(), times);
    await recordRenewal(db, on, 'node-x', why);
    const [row] = await db.query('select key_refused, seal_key_refused from node where name = $1', [on]);
    expect(row).toEqual({ key_refused: null, seal_key_refused: null });
    await expect(trustKey(db, on, why)).rejects.toMatchObject({ kind: 'usage' });
  });
});

import { compare } from '../../src/domain/comparison';
import {
  assign,
  type Db,
  declareBuild,
  instanceStatuses,
  nodesToSend,
  prepareSend,
  recordNodeBeats,
  recordReports,
  removeModule,
  removeNode,
  rotateInstance,
  setFacts,
  type Use,
  unassign,
} from '../../src/inventory';
import { generateSealKeyPair } from '../../src/link';
import { A, B, beat, deriving, facts, fitBuild, module, node, openStore, report, send, tick, times } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const why = { who: 'ada', why: 'test' };
const features = { versions: [1], shapes: ['file', 'directory', 'archive', 'service', 'action'], features: ['secrets', 'undo', 'environmentFile'] };
const { publicKey: sealKey } = generateSealKeyPair();

let count = 0;
/** Names that no other test has. */
function fresh(): (name: string) => string {
  count += 1;
  const at = count;
  return (name) => `${name}${at}`;
}

async function built(name: string, manifest: object, commit = A): Promise<string> {
  if (commit === A) await module(db, name);
  return fitBuild(db, name, commit, { resources: [], ...manifest });
}

const declare = (name: string, buildId: string, ...nodes: string[]): Promise<number> =>
  declareBuild(db, { module: name, buildId, nodes, by: 'auto' });
const comparison = async (name: string) => compare(await facts(db, name), times);
const use = (provider: string, requirement: string | null = null, on: string | null = null): Use => ({ provider, requirement, node: on });

/** The node's host reports all that it was sent as held. */
let reports = 0;
async function applyAll(on: string): Promise<void> {
  const sent = await send(db, on);
  if (sent === null) throw new Error(`${on} was sent nothing`);
  reports += 1;
  await recordReports(db, [report(on, reports, sent)], tick());
}

async function host(name: string): Promise<void> {
  await node(db, name);
  await recordNodeBeats(db, [beat(name, { reads: features, sealKey })], tick(), times);
}

const claiming = (resource: string, scope = 'node') => ({ claims: [{ resource, scope }] });

describe('what is singular', () => {
  it('is refused to the second module of its scope, naming both, and nothing is written', async () => {
    const n = fresh();
    const [kiosk, greeter] = [n('kiosk'), n('greeter')];
    await built(kiosk, claiming('port/8080'));
    await built(greeter, claiming('port/8080'));
    await node(db, n('alpha'), greeter);
    await node(db, n('beta'));
    await expect(assign(db, kiosk, n('alpha'), why)).rejects.toMatchObject({
      kind: 'usage',
      message: `${kiosk} is not placed on ${n('alpha')}: ${kiosk} and ${greeter} both claim port/8080, of which ${n('alpha')} has one: tally unassign ${greeter} ${n('alpha')}`,
    });
    expect(await db.query('select from placement where module = $1', [kiosk])).toEqual([]);
    expect(await assign(db, kiosk, n('beta'), why)).toBe(true);
    await unassign(db, greeter, n('alpha'), why);
    expect(await assign(db, kiosk, n('alpha'), why)).toBe(true);
  });

  it('is found without a claim', async () => {
    const n = fresh();
    const service = (name: string, port: string) => ({
      resources: [{ service: { name, run: ['x'], ready: { http: `http://127.0.0.1:${port}/` } } }],
    });
    await built(n('a'), service('a', '${facts.port}'));
    await built(n('b'), service('b', '80'));
    await built(n('c'), claiming('port/80'));
    await node(db, n('alpha'));
    await db.query(`update node set facts = '{"port":"80"}' where name = $1`, [n('alpha')]);
    await assign(db, n('a'), n('alpha'), why);
    await expect(assign(db, n('b'), n('alpha'), why)).rejects.toThrow(`${n('b')} and ${n('a')} both take port/80 on ${n('alpha')}`);
    await expect(assign(db, n('c'), n('alpha'), why)).rejects.toThrow('both take port/80');
  });

  it('is not taken by a fact of the node either', async () => {
    const n = fresh();
    const [a, b, alpha] = [n('a'), n('b'), n('alpha')];
    await built(a, claiming('port/${facts.a.port}'));
    await built(b, claiming('port/80'));
    await node(db, alpha);
    await setFacts(db, alpha, { 'a.port': '8080' });
    await assign(db, a, alpha, why);
    await assign(db, b, alpha, why);
    await expect(setFacts(db, alpha, { 'a.port': '80' })).rejects.toMatchObject({
      kind: 'usage',
      message: `a.port of ${alpha} is left as it is: ${a} and ${b} both claim port/80, of which ${alpha} has one: tally unassign ${b} ${alpha}`,
    });
    expect(await db.query('select facts from node where name = $1', [alpha])).toEqual([{ facts: { 'a.port': '8080' } }]);
    await setFacts(db, alpha, { 'a.port': '81' });
    expect(await db.query('select resource from claim where module = $1', [a])).toEqual([{ resource: 'port/81' }]);
  });

  it('goes to one of two that are placed at the same moment on two nodes', async () => {
    const n = fresh();
    const leader = claiming('role/leader', 'mesh');
    await built(n('a'), leader);
    await built(n('b'), leader);
    await node(db, n('alpha'));
    await node(db, n('beta'));
    const both = await Promise.allSettled([assign(db, n('a'), n('alpha'), why), assign(db, n('b'), n('beta'), why)]);
    expect(both.map((one) => one.status).sort()).toEqual(['fulfilled', 'rejected']);
    const won = both[0]?.status === 'fulfilled' ? 'a' : 'b';
    const [lost, on] = won === 'a' ? ['b', 'beta'] : ['a', 'alpha'];
    await unassign(db, n(won), n(won === 'a' ? 'alpha' : 'beta'), why);
    expect(await assign(db, n(lost), n(on), why)).toBe(true);
  });

  it('taken by a new commit leaves declared what runs, says why, and goes on by itself when the way is free', async () => {
    const n = fresh();
    const [kiosk, greeter, alpha] = [n('kiosk'), n('greeter'), n('alpha')];
    const first = await built(kiosk, {});
    await built(greeter, claiming('port/8080'));
    await node(db, alpha, kiosk, greeter);
    expect(await declare(kiosk, first, alpha)).toBe(1);
    const next = await built(kiosk, claiming('port/8080'), B);
    expect((await comparison(kiosk)).next).toMatchObject({ kind: 'declare', buildId: next });
    expect(await declare(kiosk, next, alpha)).toBe(0);
    const says = `${kiosk} and ${greeter} both claim port/8080, of which ${alpha} has one: tally unassign ${greeter} ${alpha}`;
    expect(await comparison(kiosk)).toMatchObject({
      situation: 'waiting',
      needsPerson: true,
      next: { kind: 'wait' },
      reason: `${alpha} is not declared bbbbbbb: ${says}`,
    });
    expect((await comparison(kiosk)).line).toContain(`${alpha} is not declared: ${says}`);
    expect((await facts(db, kiosk)).placements).toMatchObject([{ build: { id: first } }]);
    const since = (await facts(db, kiosk)).placements[0]?.blocked?.since;
    // Something moved, and it stands in the way still: looked at again, with the since of before.
    await node(db, n('beta'), greeter).catch(() => undefined);
    await db.query('select look_at_blocked_again()');
    expect((await comparison(kiosk)).next).toMatchObject({ kind: 'declare' });
    expect(await declare(kiosk, next, alpha)).toBe(0);
    expect((await facts(db, kiosk)).placements[0]?.blocked?.since).toBe(since);
    const { version } = await facts(db, kiosk);
    await unassign(db, greeter, alpha, why);
    expect((await facts(db, kiosk)).version).toBeGreaterThan(version);
    expect((await comparison(kiosk)).next).toMatchObject({ kind: 'declare' });
    expect(await declare(kiosk, next, alpha)).toBe(1);
    expect((await facts(db, kiosk)).placements).toMatchObject([{ build: { id: next }, blocked: null }]);
  });
});

const presence = (name: string) => ({ requires: [{ presence: name }] });

describe('what is required', () => {
  it('is refused where nothing provides it, and the modules that would are named', async () => {
    const n = fresh();
    await built(n('app'), presence(n('names')));
    await built(n('dns'), { provides: [{ presence: n('names') }] });
    await node(db, n('alpha'));
    await node(db, n('beta'));
    const refusal = `${n('app')} is not placed on ${n('alpha')}: ${n('app')} requires ${n('names')}, which nothing within reach of ${n('alpha')} provides: ${n('dns')} would, as in tally assign ${n('dns')} NODE`;
    await expect(assign(db, n('app'), n('alpha'), why)).rejects.toMatchObject({ kind: 'usage', message: refusal });
    await assign(db, n('dns'), n('beta'), why);
    await expect(assign(db, n('app'), n('alpha'), why)).rejects.toThrow('within reach of');
    await assign(db, n('dns'), n('alpha'), why);
    expect(await assign(db, n('app'), n('alpha'), why)).toBe(true);
    await expect(unassign(db, n('dns'), n('alpha'), why)).rejects.toThrow(
      `${n('dns')} on ${n('alpha')} provides ${n('names')}, which ${n('app')} on ${n('alpha')} requires: tally unassign ${n('app')} ${n('alpha')} first`,
    );
    await expect(removeModule(db, n('dns'), why)).rejects.toThrow('first');
    await unassign(db, n('app'), n('alpha'), why);
    expect(await unassign(db, n('dns'), n('alpha'), why)).toBe(true);
  });

  it('by several is refused naming them, and an operator’s choice stays in force when another appears', async () => {
    const n = fresh();
    const provides = { provides: [{ presence: n('names'), scope: 'mesh' }] };
    for (const name of ['bind', 'unbound', 'knot']) await built(n(name), provides);
    await built(n('app'), presence(n('names')));
    await node(db, n('alpha'), n('bind'), n('unbound'));
    await node(db, n('beta'));
    const [app, beta] = [n('app'), n('beta')];
    await expect(assign(db, app, beta, why)).rejects.toThrow(
      `requires ${n('names')}, which ${n('bind')} on ${n('alpha')} and ${n('unbound')} on ${n('alpha')} provide: choose one, as in tally assign ${app} ${beta} --use ${n('names')}=${n('bind')}@${n('alpha')}`,
    );
    await expect(assign(db, app, beta, why, [use(n('nobody'))])).rejects.toThrow(`there is no module ${n('nobody')} to use`);
    expect(await assign(db, app, beta, why, [use(n('unbound'))])).toBe(true);
    await assign(db, n('knot'), beta, why);
    const bound = () => db.query('select provider from binding where module = $1', [app]);
    expect(await bound()).toEqual([{ provider: n('unbound') }]);
    const build = (await facts(db, app)).effective?.id ?? '';
    expect(await declare(app, build, beta)).toBe(1);
    expect(await bound()).toEqual([{ provider: n('unbound') }]);
  });

  it('stays with what satisfied it silently when another appears', async () => {
    const n = fresh();
    const provides = { provides: [{ presence: n('names'), scope: 'mesh' }] };
    await built(n('bind'), provides);
    await built(n('unbound'), provides);
    const build = await built(n('app'), presence(n('names')));
    await node(db, n('alpha'), n('unbound'));
    await node(db, n('beta'), n('app'));
    await assign(db, n('bind'), n('beta'), why);
    expect(await declare(n('app'), build, n('beta'))).toBe(1);
    expect(await db.query('select provider from binding where module = $1', [n('app')])).toEqual([{ provider: n('unbound') }]);
  });

  it('is not taken away by a new commit of the provider', async () => {
    const n = fresh();
    await built(n('dns'), { provides: [{ presence: n('names') }] });
    await built(n('app'), presence(n('names')));
    await node(db, n('alpha'), n('dns'), n('app'));
    const next = await built(n('dns'), {}, B);
    expect(await declare(n('dns'), next, n('alpha'))).toBe(0);
    expect((await comparison(n('dns'))).reason).toContain(
      `${n('dns')} would provide ${n('names')} no longer, which ${n('app')} on ${n('alpha')} requires`,
    );
    await unassign(db, n('app'), n('alpha'), why);
    expect(await declare(n('dns'), next, n('alpha'))).toBe(1);
  });
});

const postgres = {
  resources: [{ service: { name: 'postgres', run: ['postgres'] } }],
  provides: [
    {
      instantiation: 'database',
      parameters: { encoding: { default: 'UTF8' } },
      secrets: ['password'],
      resources: [
        { file: { path: '/etc/pg/${instance.name}', mode: '0600', content: '${secret.password} ${with.encoding}' } },
        {
          action: {
            name: 'make-${instance.name}',
            run: ['make', '${instance.name}'],
            unless: ['is', '${instance.name}'],
            undo: ['drop', '${instance.name}'],
          },
        },
      ],
      gives: { host: '${node.address}', name: '${instance.name}', password: '${secret.password}' },
    },
  ],
};
const notes = {
  requires: [{ instantiation: 'database', as: 'db' }],
  resources: [{ file: { path: '/etc/notes', mode: '0600', content: '${bind.db.host} ${bind.db.name} ${bind.db.password}' } }],
};

/** A provider on alpha that is applied, and its consumer, not placed yet; in a mesh where nobody else provides a database. */
async function provided(
  n: (name: string) => string,
  consumer: object = notes,
): Promise<{ pg: string; app: string; alpha: string; beta: string; build: string; pgBuild: string }> {
  const rename = (value: object): object =>
    JSON.parse(JSON.stringify(value).replaceAll('"instantiation":"database"', `"instantiation":"${n('database')}"`)) as object;
  const [pg, app, alpha, beta] = [n('pg'), n('app'), n('alpha'), n('beta')];
  const pgBuild = await built(pg, rename(postgres));
  const build = await built(app, rename(consumer));
  await host(alpha);
  await host(beta);
  await db.query(`update node set facts = '{"address":"10.0.0.1"}' where name = $1`, [alpha]);
  await assign(db, pg, alpha, why);
  await declare(pg, pgBuild, alpha);
  await applyAll(alpha);
  return { pg, app, alpha, beta, build, pgBuild };
}

interface FileSpec {
  content?: string;
  secrets?: Record<string, { credential: string; version: number; sealed: string }>;
}

async function fileOf(on: string, path: string): Promise<FileSpec> {
  const [row] = await db.query<{ content: { resources: Array<{ spec: FileSpec & { path?: string } }> } }>(
    'select content from declaration where node = $1 order by sequence desc limit 1',
    [on],
  );
  return row?.content.resources.find((one) => one.spec.path === path)?.spec ?? {};
}

describe('an instance', () => {
  it('is made on the provider’s node before its consumer is declared, and goes with its consumer', async () => {
    const { pg, app, alpha, beta, build } = await provided(fresh());
    await assign(db, app, beta, why);
    expect(await nodesToSend(db, 1_000, tick())).toContain(alpha);
    expect(await declare(app, build, beta)).toBe(0);
    const name = `${app}-db`;
    expect(await comparison(app)).toMatchObject({
      situation: 'waiting',
      needsPerson: false,
      reason: `${beta} is not declared aaaaaaa: waits for ${pg} on ${alpha} to make ${name}`,
    });
    await applyAll(alpha);
    expect(await fileOf(alpha, `/etc/pg/${name}`)).toMatchObject({ content: '${secret.password} UTF8', secrets: { password: { version: 1 } } });
    expect((await comparison(app)).next).toMatchObject({ kind: 'declare', nodes: [beta] });
    expect(await declare(app, build, beta)).toBe(1);
    await applyAll(beta);
    expect(await fileOf(beta, '/etc/notes')).toMatchObject({
      content: `10.0.0.1 ${name} \${secret.bind.db.password}`,
      secrets: { 'bind.db.password': { version: 1, sealed: expect.any(String) } },
    });
    expect(await comparison(app)).toMatchObject({ situation: 'in step' });
    expect(await prepareSend(db, beta, deriving, tick())).toEqual({ kind: 'unchanged' });
    await expect(unassign(db, pg, alpha, why)).rejects.toThrow(`${app} on ${beta} requires`);
    await expect(removeNode(db, alpha, why)).rejects.toThrow(`${app} on ${beta} requires`);
    await unassign(db, app, beta, why);
    expect(await db.query('select from instance where consumer = $1', [app])).toEqual([]);
    await applyAll(alpha);
    expect(await fileOf(alpha, `/etc/pg/${name}`)).toEqual({});
    expect(await unassign(db, pg, alpha, why)).toBe(true);
  });

  it('is one for all nodes of its consumer, as long as one of them holds it', async () => {
    const n = fresh();
    const { app, alpha, beta, build } = await provided(n);
    await host(n('gamma'));
    await assign(db, app, beta, why);
    await assign(db, app, n('gamma'), why);
    await applyAll(alpha);
    expect(await declare(app, build, beta, n('gamma'))).toBe(2);
    const names = () => db.query('select name from instance where consumer = $1', [app]);
    expect(await names()).toEqual([{ name: `${app}-db` }]);
    await unassign(db, app, beta, why);
    expect(await names()).toHaveLength(1);
    await removeNode(db, n('gamma'), why);
    expect(await names()).toEqual([]);
  });

  it('is made anew from facts of its consumer’s node that changed', async () => {
    const n = fresh();
    const { app, alpha, beta, build } = await provided(n, {
      ...notes,
      requires: [{ instantiation: 'database', as: 'db', with: { encoding: '${facts.code}' } }],
    });
    await expect(assign(db, app, beta, why)).rejects.toThrow(
      `needs the fact code, which ${beta} does not have (tally node set ${beta} code=VALUE), for the parameter encoding of db`,
    );
    await setFacts(db, beta, { code: 'LATIN1' });
    await assign(db, app, beta, why);
    await applyAll(alpha);
    expect(await declare(app, build, beta)).toBe(1);
    await setFacts(db, beta, { code: 'LATIN2' });
    await applyAll(alpha);
    expect(await fileOf(alpha, `/etc/pg/${app}-db`)).toMatchObject({ content: '${secret.password} LATIN2' });
    await expect(setFacts(db, beta, { code: '' })).rejects.toThrow('needs the fact code');
  });

  it('is refused where the consumer says or uses what the provider does not know', async () => {
    const n = fresh();
    const { app, beta } = await provided(n, { ...notes, requires: [{ instantiation: 'database', as: 'db', with: { encodign: 'x' } }] });
    await expect(assign(db, app, beta, why)).rejects.toThrow('the parameter encodign, which it does not take: it takes encoding');
    const m = fresh();
    const other = await provided(m, { ...notes, resources: [{ file: { path: '/x', content: '${bind.db.hots}' } }] });
    await expect(assign(db, other.app, other.beta, why)).rejects.toThrow(
      `uses \${bind.db.hots}, which ${m('database')} does not give: it gives host, name, password`,
    );
  });

  it('with a new requirement of a running module is made first; what runs stays until it is', async () => {
    const n = fresh();
    const { app, alpha, beta, build } = await provided(n, { resources: [{ file: { path: '/etc/notes', content: 'none' } }] });
    await assign(db, app, beta, why);
    expect(await declare(app, build, beta)).toBe(1);
    await applyAll(beta);
    const renamed = JSON.parse(JSON.stringify(notes).replaceAll('"instantiation":"database"', `"instantiation":"${n('database')}"`)) as object;
    const next = await built(app, renamed, B);
    expect(await declare(app, next, beta)).toBe(0);
    expect((await facts(db, app)).placements).toMatchObject([{ build: { id: build }, isApplied: true, blocked: { needsPerson: false } }]);
    await applyAll(alpha);
    expect(await declare(app, next, beta)).toBe(1);
    await applyAll(beta);
    expect(await comparison(app)).toMatchObject({ situation: 'in step' });
  });

  it('has its secrets rotated on the provider first, and on its consumer once they are in force', async () => {
    const { app, alpha, beta, build } = await provided(fresh());
    await assign(db, app, beta, why);
    await applyAll(alpha);
    await declare(app, build, beta);
    await applyAll(beta);
    const name = `${app}-db`;
    const before = (await fileOf(beta, '/etc/notes')).secrets?.['bind.db.password'];
    expect(await rotateInstance(db, deriving.sealing, name, why)).toEqual([alpha, beta]);
    expect(await prepareSend(db, beta, deriving, tick())).toEqual({ kind: 'unchanged' });
    expect(await instanceStatuses(db, { name })).toMatchObject([{ name, nodes: [beta], isMade: false, secrets: [{ name: 'password', version: 2 }] }]);
    await applyAll(alpha);
    expect((await fileOf(alpha, `/etc/pg/${name}`)).secrets).toMatchObject({ password: { version: 2 } });
    await applyAll(beta);
    expect((await fileOf(beta, '/etc/notes')).secrets?.['bind.db.password']).toMatchObject({ version: 2 });
    expect((await fileOf(beta, '/etc/notes')).secrets?.['bind.db.password']?.sealed).not.toBe(before?.sealed);
    expect(await comparison(app)).toMatchObject({ situation: 'in step' });
    expect(await instanceStatuses(db, { module: app })).toMatchObject([{ isMade: true }]);
    await expect(rotateInstance(db, deriving.sealing, 'nothing', why)).rejects.toThrow('there is no instance nothing');
  });
});

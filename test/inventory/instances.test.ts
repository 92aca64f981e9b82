import {
  assign,
  type Db,
  instanceStatuses,
  nodesToSend,
  prepareSend,
  removeNode,
  rotateInstance,
  setFacts,
  unassign,
  unmadeInstances,
} from '../../src/inventory';
import { applyAll, built, comparison, declare, fileOf, fresh, host, notes, provided, why } from './providers';
import { B, deriving, facts, openStore, send, tick } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const revoked: string[] = [];
const revoke = async (user: string) => void revoked.push(user);

describe('an instance', () => {
  it('is made on the provider’s node before its consumer is declared, and goes with its consumer', async () => {
    const { pg, app, alpha, beta, build } = await provided(db, fresh());
    await assign(db, app, beta, why);
    expect(await nodesToSend(db, 1_000, tick())).toContain(alpha);
    expect(await declare(db, app, build, beta)).toBe(0);
    const name = `${app}-db`;
    expect(await comparison(db, app)).toMatchObject({
      situation: 'waiting',
      needsPerson: false,
      reason: `${beta} is not declared aaaaaaa: waits for ${pg} on ${alpha} to make ${name}`,
    });
    await applyAll(db, alpha);
    expect(await fileOf(db, alpha, `/etc/pg/${name}`)).toMatchObject({ content: '${secret.password} UTF8', secrets: { password: { version: 1 } } });
    expect((await comparison(db, app)).next).toMatchObject({ kind: 'declare', nodes: [beta] });
    expect(await declare(db, app, build, beta)).toBe(1);
    await applyAll(db, beta);
    expect(await fileOf(db, beta, '/etc/notes')).toMatchObject({
      content: `10.0.0.1 ${name} \${secret.bind.db.password}`,
      secrets: { 'bind.db.password': { version: 1, sealed: expect.any(String) } },
    });
    expect(await comparison(db, app)).toMatchObject({ situation: 'in step' });
    expect(await prepareSend(db, beta, deriving, tick())).toEqual({ kind: 'unchanged' });
    await expect(unassign(db, pg, alpha, why)).rejects.toThrow(`${app} on ${beta} requires`);
    await expect(removeNode(db, alpha, why, revoke)).rejects.toThrow(`${app} on ${beta} requires`);
    expect(revoked).toEqual([]);
    await unassign(db, app, beta, why);
    expect(await db.query('select from instance where consumer = $1', [app])).toEqual([]);
    await applyAll(db, alpha);
    expect(await fileOf(db, alpha, `/etc/pg/${name}`)).toEqual({});
    expect(await unassign(db, pg, alpha, why)).toBe(true);
  });

  it('is made where another one of the same provider cannot be', async () => {
    const n = fresh();
    const { pg, app, alpha, beta } = await provided(db, n);
    const requires = [{ instantiation: n('database'), as: 'db', with: { encoding: 'NONE' } }];
    const bad = await built(db, n('bad'), { requires });
    await assign(db, app, beta, why);
    await assign(db, n('bad'), beta, why);
    const made = async () => (await instanceStatuses(db, { module: pg })).flatMap((row) => (row.isMade ? [row.name] : []));
    await applyAll(db, alpha, { [pg]: { state: 'failed', failures: [{ resource: 'action/other', message: 'no' }] } });
    expect(await made()).toEqual([]);
    await applyAll(db, alpha, {
      [pg]: { state: 'failed', failures: [{ resource: `action/make-${n('bad')}-db`, message: 'no' }], failedParts: [`${n('bad')}-db`] },
    });
    expect(await made()).toEqual([`${app}-db`]);
    expect((await comparison(db, app)).next).toMatchObject({ kind: 'declare' });
    await send(db, beta);
    const held = async (name: string) => (await instanceStatuses(db, { name }))[0]?.secrets[0]?.holders;
    const [atApp, atBad] = [await held(`${app}-db`), await held(`${n('bad')}-db`)];
    expect(atApp).toEqual(expect.arrayContaining([expect.objectContaining({ node: alpha, isApplied: true })]));
    expect([...(atApp ?? []).filter((one) => one.node === beta), ...(atBad ?? [])].filter((one) => one.isApplied)).toEqual([]);
    expect(await declare(db, n('bad'), bad, beta)).toBe(0);
  });

  it('that cannot be made says to its consumer at what the provider’s node failed, and no other one’s failure', async () => {
    const n = fresh();
    const { pg, app, alpha, beta } = await provided(db, n);
    const other = await built(db, n('other'), { requires: [{ instantiation: n('database'), as: 'db' }] });
    await assign(db, app, beta, why);
    await assign(db, n('other'), beta, why);
    expect(await declare(db, n('other'), other, beta)).toBe(0);
    const failures = async (module: string) => (await unmadeInstances(db, module)).map((one) => `${one.instance}: ${one.resource} ${one.message}`);
    expect([await failures(app), await failures(n('other'))]).toEqual([[], []]);
    await applyAll(db, alpha, { [pg]: { state: 'failed', failures: [{ resource: 'service/postgres', message: 'exit status 1' }] } });
    const whole = 'service/postgres exit status 1';
    expect([await failures(app), await failures(n('other'))]).toEqual([[`${app}-db: ${whole}`], [`${n('other')}-db: ${whole}`]]);
    await applyAll(db, alpha, {
      [pg]: {
        state: 'failed',
        failures: [
          { resource: 'action/make-something', message: 'no' },
          { resource: `action/make-${app}-db`, message: 'no such encoding' },
        ],
        failedParts: ['something', `${app}-db`],
      },
    });
    expect([await failures(app), await failures(n('other'))]).toEqual([[`${app}-db: action/make-${app}-db no such encoding`], []]);
    expect((await unmadeInstances(db, app))[0]).toMatchObject({ provider: pg, providerNode: alpha, nodes: [beta] });
    await applyAll(db, alpha);
    expect(await failures(app)).toEqual([]);
  });

  it('is refused where another module of the provider’s node has what would be made, or one consumer would have it made twice', async () => {
    const n = fresh();
    const { pg, app, alpha, beta } = await provided(db, n);
    const squat = await built(db, n('squat'), { resources: [{ file: { path: `/etc/pg/${app}-db`, content: 'mine' } }] });
    await assign(db, n('squat'), alpha, why);
    await declare(db, n('squat'), squat, alpha);
    await expect(assign(db, app, beta, why)).rejects.toMatchObject({
      kind: 'usage',
      message: `${app} is not placed on ${beta}: ${pg} and ${n('squat')} both place /etc/pg/${app}-db on ${alpha}: tally unassign ${n('squat')} ${alpha}`,
    });
    await unassign(db, n('squat'), alpha, why);
    expect(await assign(db, app, beta, why)).toBe(true);
    expect(await assign(db, n('squat'), beta, why)).toBe(true);

    const route = {
      instantiation: n('route'),
      parameters: { host: { is: 'host' } },
      resources: [{ file: { path: '/routes/${with.host}', content: '' } }],
    };
    const proxy = await built(db, n('proxy'), { provides: [route] });
    await assign(db, n('proxy'), alpha, why);
    const twice = ['one', 'two'].map((as) => ({ instantiation: n('route'), as, with: { host: 'a.home' } }));
    await built(db, n('twin'), { requires: twice });
    await expect(assign(db, n('twin'), beta, why)).rejects.toThrow(
      `${n('twin')}-one and ${n('twin')}-two of ${n('twin')} would both have ${n('proxy')} on ${alpha} make /routes/a.home: give one of them other parameters`,
    );
    // Its own, found again, is no rival of itself, whatever its name had to be.
    const x = n('x');
    await built(db, `${x}-y`, { requires: [{ instantiation: n('route'), as: 'z', with: { host: 'b.home' } }] });
    const yz = await built(db, x, { requires: [{ instantiation: n('route'), as: 'y-z', with: { host: 'c.home' } }] });
    await assign(db, `${x}-y`, beta, why);
    await assign(db, x, beta, why);
    expect((await instanceStatuses(db, { module: x })).map((row) => row.name)).not.toEqual([`${x}-y-z`]);
    await declare(db, n('proxy'), proxy, alpha);
    await applyAll(db, alpha);
    expect(await declare(db, x, yz, beta)).toBe(1);
  });

  it('is given on as it is used, and made apart, by a new commit of its provider too', async () => {
    const n = fresh();
    const { pg, app, alpha, beta } = await provided(db, n);
    await assign(db, app, beta, why);
    await built(db, n('other'), { requires: [{ instantiation: n('database'), as: 'db' }] });
    await assign(db, n('other'), beta, why);
    const given = { instantiation: n('database'), parameters: { encoding: { default: 'UTF8' } }, secrets: ['password'] };
    const gives = { host: 'h', name: 'n', password: '${secret.password}' };
    const commits = ['b', 'c', 'd', 'e'].map((digit) => digit.repeat(40));
    const next = async (provision: object) =>
      declare(db, pg, await built(db, pg, { provides: [{ ...given, ...provision }] }, commits.shift()), alpha);
    expect(await next({ gives: { name: 'n', password: '${secret.password}' } })).toBe(0);
    expect((await comparison(db, pg)).reason).toContain(
      `${app} on ${beta} uses \${bind.db.host}, which ${n('database')} does not give: it gives name, password, as ${pg} would have it from now on`,
    );
    expect(await next({ gives: { ...gives, host: '${secret.password}' } })).toBe(1);
    expect(await next({ gives, resources: [{ file: { path: '/db/${with.encoding}', content: '' } }] })).toBe(0);
    expect((await comparison(db, pg)).reason).toContain(`${app} and ${n('other')} would both have ${pg} on ${alpha} make /db/UTF8`);
    expect(await next({ gives })).toBe(1);
  });

  it('is one for all nodes of its consumer, as long as one of them holds it', async () => {
    const n = fresh();
    const { app, alpha, beta, build } = await provided(db, n);
    await host(db, n('gamma'));
    await assign(db, app, beta, why);
    await assign(db, app, n('gamma'), why);
    await applyAll(db, alpha);
    expect(await declare(db, app, build, beta, n('gamma'))).toBe(2);
    const names = () => db.query('select name from instance where consumer = $1', [app]);
    expect(await names()).toEqual([{ name: `${app}-db` }]);
    await unassign(db, app, beta, why);
    expect(await names()).toHaveLength(1);
    await removeNode(db, n('gamma'), why, revoke);
    expect(await names()).toEqual([]);
  });

  it('is made anew from facts of its consumer’s node that changed', async () => {
    const n = fresh();
    const { app, alpha, beta, build } = await provided(db, n, {
      ...notes,
      requires: [{ instantiation: 'database', as: 'db', with: { encoding: '${facts.code}' } }],
    });
    await expect(assign(db, app, beta, why)).rejects.toThrow(
      `needs the fact code, which ${beta} does not have (tally node set ${beta} code=VALUE), for the parameter encoding of db`,
    );
    await setFacts(db, beta, { code: 'LATIN1' });
    await assign(db, app, beta, why);
    await applyAll(db, alpha);
    expect(await declare(db, app, build, beta)).toBe(1);
    await setFacts(db, beta, { code: 'LATIN2' });
    await applyAll(db, alpha);
    expect(await fileOf(db, alpha, `/etc/pg/${app}-db`)).toMatchObject({ content: '${secret.password} LATIN2' });
    await expect(setFacts(db, beta, { code: '' })).rejects.toThrow('needs the fact code');
  });

  it('is refused where the consumer says or uses what the provider does not know', async () => {
    const n = fresh();
    const { app, beta } = await provided(db, n, { ...notes, requires: [{ instantiation: 'database', as: 'db', with: { encodign: 'x' } }] });
    await expect(assign(db, app, beta, why)).rejects.toThrow('the parameter encodign, which it does not take: it takes encoding');
    const m = fresh();
    const other = await provided(db, m, { ...notes, resources: [{ file: { path: '/x', content: '${bind.db.hots}' } }] });
    await expect(assign(db, other.app, other.beta, why)).rejects.toThrow(
      `uses \${bind.db.hots}, which ${m('database')} does not give: it gives host, name, password`,
    );
    const o = fresh();
    const open = await provided(db, o, { ...notes, resources: [{ file: { path: '/x', mode: '0644', content: '${bind.db.password}' } }] });
    await expect(assign(db, open.app, open.beta, why)).rejects.toThrow('uses ${bind.db.password}, which is a secret: it may stand in the content');
  });

  it('with a new requirement of a running module is made first; what runs stays until it is', async () => {
    const n = fresh();
    const { app, alpha, beta, build } = await provided(db, n, { resources: [{ file: { path: '/etc/notes', content: 'none' } }] });
    await assign(db, app, beta, why);
    expect(await declare(db, app, build, beta)).toBe(1);
    await applyAll(db, beta);
    const renamed = JSON.parse(JSON.stringify(notes).replaceAll('"instantiation":"database"', `"instantiation":"${n('database')}"`)) as object;
    const next = await built(db, app, renamed, B);
    expect(await declare(db, app, next, beta)).toBe(0);
    expect((await facts(db, app)).placements).toMatchObject([{ build: { id: build }, isApplied: true, blocked: { needsPerson: false } }]);
    await applyAll(db, alpha);
    expect(await declare(db, app, next, beta)).toBe(1);
    await applyAll(db, beta);
    expect(await comparison(db, app)).toMatchObject({ situation: 'in step' });
  });

  it('has its secrets rotated on the provider first, and on its consumer once they are in force', async () => {
    const { app, alpha, beta, build } = await provided(db, fresh());
    await assign(db, app, beta, why);
    await applyAll(db, alpha);
    await declare(db, app, build, beta);
    await applyAll(db, beta);
    const name = `${app}-db`;
    const before = (await fileOf(db, beta, '/etc/notes')).secrets?.['bind.db.password'];
    expect(await rotateInstance(db, deriving.sealing, name, why)).toEqual([alpha, beta]);
    expect(await prepareSend(db, beta, deriving, tick())).toEqual({ kind: 'unchanged' });
    expect(await instanceStatuses(db, { name })).toMatchObject([{ name, nodes: [beta], isMade: false, secrets: [{ name: 'password', version: 2 }] }]);
    await applyAll(db, alpha);
    expect((await fileOf(db, alpha, `/etc/pg/${name}`)).secrets).toMatchObject({ password: { version: 2 } });
    await applyAll(db, beta);
    expect((await fileOf(db, beta, '/etc/notes')).secrets?.['bind.db.password']).toMatchObject({ version: 2 });
    expect((await fileOf(db, beta, '/etc/notes')).secrets?.['bind.db.password']?.sealed).not.toBe(before?.sealed);
    expect(await comparison(db, app)).toMatchObject({ situation: 'in step' });
    expect(await instanceStatuses(db, { module: app })).toMatchObject([{ isMade: true }]);
    await expect(rotateInstance(db, deriving.sealing, 'nothing', why)).rejects.toThrow('there is no instance nothing');
  });
});

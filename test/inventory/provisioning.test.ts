import { assign, type Db, recordIntent, removeModule, setFacts, unassign } from '../../src/inventory';
import { built, comparison, declare, fresh, use, why } from './providers';
import { B, facts, node, openStore } from './store';

let db: Db;
beforeAll(async () => ({ db } = await openStore()));
afterAll(() => db.close());

const claiming = (resource: string, scope = 'node') => ({ claims: [{ resource, scope }] });

describe('what is singular', () => {
  it('is refused to the second module of its scope, naming both, and nothing is written', async () => {
    const n = fresh();
    const [kiosk, greeter] = [n('kiosk'), n('greeter')];
    await built(db, kiosk, claiming('port/8080'));
    await built(db, greeter, claiming('port/8080'));
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
    await built(db, n('a'), service('a', '${facts.port}'));
    await built(db, n('b'), service('b', '80'));
    await built(db, n('c'), claiming('port/80'));
    await node(db, n('alpha'));
    await db.query(`update node set facts = '{"port":"80"}' where name = $1`, [n('alpha')]);
    await assign(db, n('a'), n('alpha'), why);
    await expect(assign(db, n('b'), n('alpha'), why)).rejects.toThrow(`${n('b')} and ${n('a')} both take port/80 on ${n('alpha')}`);
    await expect(assign(db, n('c'), n('alpha'), why)).rejects.toThrow('both take port/80');
  });

  it('is not taken by a fact of the node either', async () => {
    const n = fresh();
    const [a, b, alpha] = [n('a'), n('b'), n('alpha')];
    await built(db, a, claiming('port/${facts.a.port}'));
    await built(db, b, claiming('port/80'));
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
    await built(db, n('a'), leader);
    await built(db, n('b'), leader);
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
    const first = await built(db, kiosk, {});
    await built(db, greeter, claiming('port/8080'));
    await node(db, alpha, kiosk, greeter);
    expect(await declare(db, kiosk, first, alpha)).toBe(1);
    const next = await built(db, kiosk, claiming('port/8080'), B);
    expect((await comparison(db, kiosk)).next).toMatchObject({ kind: 'declare', buildId: next });
    expect(await declare(db, kiosk, next, alpha)).toBe(0);
    const says = `${kiosk} and ${greeter} both claim port/8080, of which ${alpha} has one: tally unassign ${greeter} ${alpha}`;
    expect(await comparison(db, kiosk)).toMatchObject({
      situation: 'waiting',
      needsPerson: true,
      next: { kind: 'wait' },
      reason: `${alpha} is not declared bbbbbbb: ${says}`,
    });
    expect((await comparison(db, kiosk)).line).toContain(`${alpha} is not declared: ${says}`);
    expect((await facts(db, kiosk)).placements).toMatchObject([{ build: { id: first } }]);
    const since = (await facts(db, kiosk)).placements[0]?.blocked?.since;
    // Something moved, and it stands in the way still: looked at again, with the since of before.
    await node(db, n('beta'), greeter).catch(() => undefined);
    await db.query('select look_at_blocked_again()');
    expect((await comparison(db, kiosk)).next).toMatchObject({ kind: 'declare' });
    expect(await declare(db, kiosk, next, alpha)).toBe(0);
    expect((await facts(db, kiosk)).placements[0]?.blocked?.since).toBe(since);
    const { version } = await facts(db, kiosk);
    await unassign(db, greeter, alpha, why);
    expect((await facts(db, kiosk)).version).toBeGreaterThan(version);
    expect((await comparison(db, kiosk)).next).toMatchObject({ kind: 'declare' });
    expect(await declare(db, kiosk, next, alpha)).toBe(1);
    expect((await facts(db, kiosk)).placements).toMatchObject([{ build: { id: next }, blocked: null }]);
  });

  it('by a commit of before is not gone back to, and the refusal says why', async () => {
    const n = fresh();
    const [kiosk, greeter, alpha] = [n('kiosk'), n('greeter'), n('alpha')];
    const first = await built(db, kiosk, claiming('port/8080'));
    await node(db, alpha, kiosk);
    await declare(db, kiosk, first, alpha);
    const next = await built(db, kiosk, {}, B);
    expect(await declare(db, kiosk, next, alpha)).toBe(1);
    await built(db, greeter, claiming('port/8080'));
    await assign(db, greeter, alpha, why);
    const back = { id: `rollback-${kiosk}`, verb: 'rollback' as const, module: kiosk, node: null, buildId: first, ...why };
    await expect(recordIntent(db, back)).rejects.toThrow(
      `aaaaaaa of ${kiosk} is not declared on ${alpha}: ${kiosk} and ${greeter} both claim port/8080`,
    );
    expect((await facts(db, kiosk)).hold).toBeNull();
  });

  it('shown and given up by a new commit lets another one be', async () => {
    const n = fresh();
    const [a, b, alpha] = [n('a'), n('b'), n('alpha')];
    const file = (path: string) => ({ resources: [{ file: { path, content: '' } }] });
    const first = await built(db, a, file(`/etc/${a}`));
    await built(db, b, file('/etc/shared'));
    await node(db, alpha, a, b);
    const moved = await built(db, a, file('/etc/shared'), B);
    await declare(db, a, first, alpha);
    expect(await declare(db, a, moved, alpha)).toBe(0);
    expect((await comparison(db, a)).reason).toContain(`${a} and ${b} both place /etc/shared on ${alpha}`);
    const away = await built(db, b, file(`/etc/${b}`), B);
    expect(await declare(db, b, away, alpha)).toBe(1);
    expect((await comparison(db, a)).next).toMatchObject({ kind: 'declare' });
    expect(await declare(db, a, moved, alpha)).toBe(1);
  });
});

const presence = (name: string) => ({ requires: [{ presence: name }] });

describe('what is required', () => {
  it('is refused where nothing provides it, and the modules that would are named', async () => {
    const n = fresh();
    await built(db, n('app'), presence(n('names')));
    await built(db, n('dns'), { provides: [{ presence: n('names') }] });
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
    for (const name of ['bind', 'unbound', 'knot']) await built(db, n(name), provides);
    await built(db, n('app'), presence(n('names')));
    await node(db, n('alpha'), n('bind'), n('unbound'));
    await node(db, n('beta'));
    const [app, beta] = [n('app'), n('beta')];
    await expect(assign(db, app, beta, why)).rejects.toThrow(
      `requires ${n('names')}, which ${n('bind')} on ${n('alpha')} and ${n('unbound')} on ${n('alpha')} provide: choose one, as in tally assign ${app} ${beta} --use ${n('names')}=${n('bind')}@${n('alpha')}`,
    );
    await expect(assign(db, app, beta, why, [use(n('nobody'))])).rejects.toThrow(`there is no module ${n('nobody')} to use`);
    await expect(assign(db, app, beta, why, [use(n('bind'), null, 'nowhere')])).rejects.toThrow('there is no node nowhere to use a provider on');
    await expect(assign(db, app, beta, why, [use(n('bind'), 'nmaes')])).rejects.toThrow(
      `${app} requires nothing as nmaes to use ${n('bind')} for: it requires ${n('names')}`,
    );
    expect(await assign(db, app, beta, why, [use(n('unbound'))])).toBe(true);
    await assign(db, n('knot'), beta, why);
    const bound = () => db.query('select provider from binding where module = $1', [app]);
    expect(await bound()).toEqual([{ provider: n('unbound') }]);
    const build = (await facts(db, app)).effective?.id ?? '';
    expect(await declare(db, app, build, beta)).toBe(1);
    expect(await bound()).toEqual([{ provider: n('unbound') }]);
  });

  it('stays with what satisfied it silently when another appears', async () => {
    const n = fresh();
    const provides = { provides: [{ presence: n('names'), scope: 'mesh' }] };
    await built(db, n('bind'), provides);
    await built(db, n('unbound'), provides);
    const build = await built(db, n('app'), presence(n('names')));
    await node(db, n('alpha'), n('unbound'));
    await node(db, n('beta'), n('app'));
    await assign(db, n('bind'), n('beta'), why);
    expect(await declare(db, n('app'), build, n('beta'))).toBe(1);
    expect(await db.query('select provider from binding where module = $1', [n('app')])).toEqual([{ provider: n('unbound') }]);
  });

  it('is not taken away by a new commit of the provider', async () => {
    const n = fresh();
    await built(db, n('dns'), { provides: [{ presence: n('names') }] });
    await built(db, n('app'), presence(n('names')));
    await node(db, n('alpha'), n('dns'), n('app'));
    const next = await built(db, n('dns'), {}, B);
    expect(await declare(db, n('dns'), next, n('alpha'))).toBe(0);
    expect((await comparison(db, n('dns'))).reason).toContain(
      `${n('dns')} would provide ${n('names')} no longer, which ${n('app')} on ${n('alpha')} requires`,
    );
    await unassign(db, n('app'), n('alpha'), why);
    expect(await declare(db, n('dns'), next, n('alpha'))).toBe(1);
  });
});

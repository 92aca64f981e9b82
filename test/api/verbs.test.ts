import { readFileSync, statSync } from 'node:fs';
import { addedNodeAnswer, behindAnswer, doneAnswer, failure, meshAnswer, moduleAnswer, nodeAnswer, webhookAnswer } from '../../src/schema/api';
import { apiOfFile } from '../support/api';
import { answeredBuild, COMMITS, inStep, situate } from '../support/meshes';

const api = apiOfFile();

async function intents(): Promise<Array<{ verb: string; module: string | null; who: string; why: string }>> {
  return await api.db.query('select verb, module, who, why from intent order by at');
}

describe('an operator’s verb', () => {
  test('goes through the workflow, with the name of the token as who', async () => {
    await inStep(api.db, 'kiosk');
    const { status, body } = await api.call('POST', '/api/v1/modules/kiosk/hold', { why: 'fair week' });
    expect(status).toBe(200);
    expect(doneAnswer.parse(body)).toMatchObject({ isUnderWay: true, says: expect.stringContaining('held') });
    expect(api.temporal.updates).toEqual([
      { module: 'kiosk', verb: 'hold', ask: { id: expect.any(String), who: 'ada', why: 'fair week', buildId: null } },
    ]);
    expect(await intents()).toEqual([{ verb: 'hold', module: 'kiosk', who: 'ada', why: 'fair week' }]);
  });

  test('is written down though Temporal is away, and that is said', async () => {
    await inStep(api.db, 'kiosk');
    api.temporal.isAway = true;
    const { status, body } = await api.call('POST', '/api/v1/modules/kiosk/hold', { why: 'fair week' });
    expect(status).toBe(200);
    const said = doneAnswer.parse(body);
    expect(said.isUnderWay).toBe(false);
    expect(said.says).toMatch(/Temporal, which does not answer now/);
    expect(await intents()).toHaveLength(1);
    expect(moduleAnswer.parse((await api.call('GET', '/api/v1/modules/kiosk')).body).hold).toMatchObject({ by: 'ada', why: 'fair week' });
  });

  test('that a validator refuses changes nothing and says why', async () => {
    await inStep(api.db, 'kiosk');
    api.temporal.refusal = 'kiosk is not held: nothing to release';
    const { status, body } = await api.call('POST', '/api/v1/modules/kiosk/release', { why: 'over' });
    expect([status, failure.parse(body).error]).toEqual([409, 'kiosk is not held: nothing to release']);
    expect(await intents()).toEqual([]);
  });

  test('that is refused while Temporal is away leaves no intent behind', async () => {
    await inStep(api.db, 'kiosk');
    api.temporal.isAway = true;
    const { status } = await api.call('POST', '/api/v1/modules/kiosk/release', { why: 'over' });
    expect(status).toBe(409);
    expect(await intents()).toEqual([]);
  });

  test.each(['declare', 'hold', 'release', 'rollback', 'cancel'])('%s needs a why', async (verb) => {
    await inStep(api.db, 'kiosk');
    for (const body of [{}, { why: '' }, { why: '   ' }]) {
      const { status, body: said } = await api.call('POST', `/api/v1/modules/kiosk/${verb}`, body);
      expect(status).toBe(400);
      expect(failure.parse(said).error).toContain('why');
    }
    expect(api.temporal.updates).toEqual([]);
  });

  test('refuses keys that it does not know', async () => {
    await inStep(api.db, 'kiosk');
    const { status, body } = await api.call('POST', '/api/v1/modules/kiosk/hold', { why: 'x', until: 'monday' });
    expect(status).toBe(400);
    expect(failure.parse(body).error).toContain('until');
  });

  test('names a build by its id or by the start of its commit', async () => {
    await inStep(api.db, 'kiosk');
    await answeredBuild(api.db, { id: 'build-1', module: 'kiosk', commit: COMMITS.fit, verdict: 'fit' });
    for (const build of ['build-1', '77ab310']) await api.call('POST', '/api/v1/modules/kiosk/rollback', { why: 'prices', build });
    expect(api.temporal.updates.map(({ ask }) => ask.buildId)).toEqual(['build-1', 'build-1']);
    const { status, body } = await api.call('POST', '/api/v1/modules/kiosk/rollback', { why: 'prices', build: 'abcdef0' });
    expect(status).toBe(409);
    expect(failure.parse(body).error).toMatch(/abcdef0/);
  });

  test('rollback without a build says so when there is none to go back to', async () => {
    await inStep(api.db, 'kiosk');
    const { status, body } = await api.call('POST', '/api/v1/modules/kiosk/rollback', { why: 'prices' });
    expect([status, failure.parse(body).error]).toEqual([409, expect.stringContaining('no earlier fit build')]);
  });

  test('of a module that is not there is a 404 that names the one that was meant', async () => {
    await inStep(api.db, 'kiosk');
    for (const path of ['modules/kiosc/hold', 'modules/kiosc/nudge', 'modules/kiosc/build', 'modules/kiosc/webhook']) {
      const { status, body } = await api.call('POST', `/api/v1/${path}`, { why: 'x' });
      // Nudge and webhook take no body and look at none.
      expect([status, failure.parse(body).error]).toEqual([404, 'there is no module kiosc: did you mean kiosk?']);
    }
  });
});

describe('build', () => {
  test('--again asks for one more try of the head', async () => {
    await inStep(api.db, 'kiosk');
    await api.call('POST', '/api/v1/modules/kiosk/build', { again: true });
    expect(api.temporal.updates).toEqual([expect.objectContaining({ verb: 'rebuild', ask: expect.objectContaining({ why: 'build --again' }) })]);
  });

  test('without it reads git again and compares', async () => {
    await inStep(api.db, 'kiosk');
    const { body } = await api.call('POST', '/api/v1/modules/kiosk/build', {});
    expect(doneAnswer.parse(body).says).toContain('is fit already');
    expect(api.events).toEqual([['kiosk']]);
    expect(api.temporal.nudged).toEqual(['kiosk']);
  });

  test('--behind looks at every module whose head has no verdict, and no other', async () => {
    await inStep(api.db, 'core');
    await situate(api.db, { module: 'kiosk', head: COMMITS.moving, situation: 'waiting', next: 'build', line: 'x', reason: 'y' });
    const { body } = await api.call('POST', '/api/v1/build', { behind: true });
    expect(behindAnswer.parse(body).modules).toEqual(['kiosk']);
    expect(api.events).toEqual([['kiosk']]);
  });
});

describe('the default of declaring', () => {
  afterEach(async () => {
    await api.db.query(`delete from setting where key = 'declareDefault'`);
  });

  test('is said by a person, whose name and why are kept', async () => {
    expect(meshAnswer.parse((await api.call('GET', '/api/v1/mesh')).body)).toEqual({ mesh: 'home', declareDefault: 'ask', said: null });
    await api.call('POST', '/api/v1/mesh/default', { policy: 'auto' });
    const { status, body } = await api.call('POST', '/api/v1/mesh/default', { policy: 'auto', why: 'fair week' });
    expect([status, doneAnswer.parse(body).says]).toEqual([200, expect.stringContaining('auto: a fit build declares itself, as before')]);
    expect(await intents()).toEqual([
      { verb: 'default', module: null, who: 'ada', why: 'mesh default auto' },
      { verb: 'default', module: null, who: 'ada', why: 'fair week' },
    ]);
    const said = { who: 'ada', why: 'fair week', at: expect.any(String) };
    expect(meshAnswer.parse((await api.call('GET', '/api/v1/mesh')).body)).toEqual({ mesh: 'home', declareDefault: 'auto', said });
  });

  test('is auto or ask, and nothing is written of anything else', async () => {
    for (const body of [{ policy: 'always' }, {}, { policy: 'auto', until: 'monday' }]) {
      expect((await api.call('POST', '/api/v1/mesh/default', body)).status).toBe(400);
    }
    expect((await api.call('POST', '/api/v1/mesh/default', { policy: 'auto' }, { authorization: 'Bearer nobody' })).status).toBe(401);
    expect(await intents()).toEqual([]);
  });
});

test('a nudge that Temporal does not take is not lost and that is said', async () => {
  await inStep(api.db, 'kiosk');
  api.temporal.isAway = true;
  const { status, body } = await api.call('POST', '/api/v1/modules/kiosk/nudge', {});
  expect(status).toBe(200);
  expect(doneAnswer.parse(body)).toMatchObject({ isUnderWay: false, says: expect.stringContaining('once Temporal answers') });
  expect(api.events).toEqual([['kiosk']]);
});

describe('modules', () => {
  test('are added, read at once, and removed with a why', async () => {
    const added = await api.call('POST', '/api/v1/modules', { module: 'kiosk', repository: 'https://git.example/kiosk.git' });
    expect(added.status).toBe(201);
    expect(api.events).toEqual([['kiosk']]);
    expect((await api.call('POST', '/api/v1/modules', { module: 'kiosk', repository: 'https://git.example/other.git' })).status).toBe(409);
    expect((await api.call('DELETE', '/api/v1/modules/kiosk', {})).status).toBe(400);
    expect((await api.call('DELETE', '/api/v1/modules/kiosk', { why: 'gone' })).status).toBe(200);
    expect((await api.call('GET', '/api/v1/modules/kiosk')).status).toBe(404);
  });

  test.each([
    ['a name of capitals', { module: 'Kiosk', repository: 'https://git.example/k.git' }],
    ['a name of dots', { module: '../etc', repository: 'https://git.example/k.git' }],
    ['a repository that git would take as an option', { module: 'kiosk', repository: '--upload-pack=touch /tmp/x' }],
    ['a repository that is no address', { module: 'kiosk', repository: 'notaurl' }],
    ['a ref that git would take as an option', { module: 'kiosk', repository: 'https://git.example/k.git', ref: '--all' }],
    ['a ref with a space', { module: 'kiosk', repository: 'https://git.example/k.git', ref: 'a b' }],
    ['no repository', { module: 'kiosk' }],
    ['something else', ['kiosk']],
  ])('with %s are refused', async (_, body) => {
    const { status, body: said } = await api.call('POST', '/api/v1/modules', body);
    expect(status).toBe(400);
    expect(failure.parse(said).error).not.toContain('\n');
    expect(await api.db.query('select name from module')).toEqual([]);
  });

  test('have a webhook secret that is made once, and lies in the store only sealed', async () => {
    await inStep(api.db, 'kiosk');
    const first = webhookAnswer.parse((await api.call('POST', '/api/v1/modules/kiosk/webhook', {})).body);
    const second = webhookAnswer.parse((await api.call('POST', '/api/v1/modules/kiosk/webhook', {})).body);
    expect(second).toEqual(first);
    expect(first.addresses.github).toBe('http://tally.test/hooks/github');
    const [row] = await api.db.query<{ text: string }>('select module::text as text from module');
    expect(row?.text).not.toContain(first.secret);
  });
});

describe('nodes', () => {
  test('get an account and a credential file of mode 0600', async () => {
    const { status, body } = await api.call('POST', '/api/v1/nodes', { node: 'alpha', facts: { 'meshboard.port': '8081' } });
    expect(status).toBe(201);
    const { credentialFile } = addedNodeAnswer.parse(body);
    expect(statSync(credentialFile).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(credentialFile, 'utf8'))).toMatchObject({
      node: 'alpha',
      amqpUrl: 'amqp://node-alpha:secret@broker',
      registryUrl: 'http://registry',
    });
    expect(JSON.stringify(body)).not.toContain('secret');
    expect(nodeAnswer.parse((await api.call('GET', '/api/v1/nodes/alpha')).body).facts).toEqual({ 'meshboard.port': '8081' });
  });

  test('that exist keep the account that their host uses', async () => {
    await api.call('POST', '/api/v1/nodes', { node: 'alpha' });
    const { status, body } = await api.call('POST', '/api/v1/nodes', { node: 'alpha' });
    expect([status, failure.parse(body).error]).toEqual([409, 'there is a node alpha already: tally node show alpha']);
    expect(api.accounts).toEqual(['alpha']);
  });

  test('change their facts, and are removed with account and file', async () => {
    await api.call('POST', '/api/v1/nodes', { node: 'alpha', facts: { a: '1', b: '2' } });
    await api.call('POST', '/api/v1/nodes/alpha/facts', { facts: { a: '3', b: '' } });
    expect(nodeAnswer.parse((await api.call('GET', '/api/v1/nodes/alpha')).body).facts).toEqual({ a: '3' });
    expect((await api.call('DELETE', '/api/v1/nodes/alpha', { why: 'sold' })).status).toBe(200);
    expect(api.accounts).toEqual([]);
    expect((await api.call('GET', '/api/v1/nodes/alpha')).status).toBe(404);
  });

  test('are placed upon, and taken from, only where both are known', async () => {
    await inStep(api.db, 'kiosk');
    await api.call('POST', '/api/v1/nodes', { node: 'alpha' });
    const assigned = await api.call('POST', '/api/v1/assign', { module: 'kiosk', node: 'alpha' });
    expect(doneAnswer.parse(assigned.body).says).toBe('kiosk is placed on alpha');
    expect(doneAnswer.parse((await api.call('POST', '/api/v1/assign', { module: 'kiosk', node: 'alpha' })).body).says).toBe(
      'kiosk was on alpha already',
    );
    expect((await api.call('POST', '/api/v1/assign', { module: 'kiosk', node: 'alpa' })).body).toEqual({
      error: 'there is no node alpa: did you mean alpha?',
    });
    expect(doneAnswer.parse((await api.call('POST', '/api/v1/unassign', { module: 'kiosk', node: 'alpha' })).body).says).toBe(
      'kiosk is taken from alpha',
    );
  });

  test('are pushed to by name, or all that are behind', async () => {
    await inStep(api.db, 'kiosk');
    await api.call('POST', '/api/v1/nodes', { node: 'alpha' });
    await api.call('POST', '/api/v1/assign', { module: 'kiosk', node: 'alpha' });
    expect((await api.call('POST', '/api/v1/push', {})).status).toBe(400);
    expect(behindAnswer.parse((await api.call('POST', '/api/v1/push', { behind: true })).body).nodes).toEqual(['alpha']);
    expect(behindAnswer.parse((await api.call('POST', '/api/v1/push', { node: 'alpha', again: true })).body).says).toContain('alpha');
    expect((await api.call('POST', '/api/v1/push', { node: 'alfa' })).status).toBe(404);
    await api.db.query(`update node set sent_sequence = 1, derived_version = version, derived_digest = 'd', sent_digest = 'd'`);
    expect(behindAnswer.parse((await api.call('POST', '/api/v1/push', { node: 'alpha' })).body)).toMatchObject({
      nodes: [],
      says: 'alpha is not behind: --again sends it what it already has',
    });
  });
});

describe('what comes over the wire', () => {
  test.each([
    ['that is no JSON', '{"why":', 400],
    ['that is larger than any verb', JSON.stringify({ why: 'x'.repeat(100_000) }), 413],
    ['with a poisoned key', '{"__proto__": {"who": "eve"}, "why": "x"}', 400],
  ])('a body %s is refused in one line', async (_, text, expected) => {
    await inStep(api.db, 'kiosk');
    const { status, body } = await api.call('POST', '/api/v1/modules/kiosk/hold', text);
    expect(status).toBe(expected);
    expect(failure.parse(body).error).not.toContain('\n');
    expect(api.temporal.updates).toEqual([]);
  });

  test('who asks is never taken from the body', async () => {
    await inStep(api.db, 'kiosk');
    expect((await api.call('POST', '/api/v1/modules/kiosk/hold', { why: 'x', who: 'eve' })).status).toBe(400);
  });
});

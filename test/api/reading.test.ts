import {
  doctorAnswer,
  failure,
  logAnswer,
  moduleAnswer,
  moduleList,
  nodeAnswer,
  nodeList,
  statusAnswer,
  whoAnswer,
  whyAnswer,
} from '../../src/schema/api';
import { planAnswer } from '../../src/schema/graphApi';
import { apiOfFile } from '../support/api';
import { aDay, answeredBuild, COMMITS, inStep, situate } from '../support/meshes';

const api = apiOfFile();

describe('who asks', () => {
  test.each([
    ['no token', {}],
    ['a token that is nobody’s', { authorization: 'Bearer not-a-token' }],
    ['no bearer', { authorization: 'Basic YTpi' }],
    ['a token longer than any', { authorization: `Bearer ${'x'.repeat(5_000)}` }],
  ])('is refused with %s, in one line', async (_, headers) => {
    const response = await fetch(`${api.url}/api/v1/status`, { headers });
    expect(response.status).toBe(401);
    const { error } = failure.parse(await response.json());
    expect(error).toMatch(/token/);
    expect(error).not.toContain('\n');
  });

  test('is the name of the token', async () => {
    const { body } = await api.call('GET', '/api/v1/whoami');
    expect(whoAnswer.parse(body)).toEqual({ name: 'ada' });
  });

  test('may read with the cookie and change nothing with it', async () => {
    await inStep(api.db, 'core');
    const cookie = { cookie: `tally_token=${api.token}` };
    expect((await fetch(`${api.url}/api/v1/status`, { headers: cookie })).status).toBe(200);
    const change = await fetch(`${api.url}/api/v1/modules/core/hold`, {
      method: 'POST',
      headers: { ...cookie, 'content-type': 'application/json' },
      body: JSON.stringify({ why: 'by another page' }),
    });
    expect(change.status).toBe(401);
    expect(api.temporal.updates).toEqual([]);
  });
});

describe('status', () => {
  test('has what needs a person first, and each such row the verb that helps', async () => {
    await aDay(api.db);
    const { status, body } = await api.call('GET', '/api/v1/status');
    expect(status).toBe(200);
    const read = statusAnswer.parse(body);
    expect(read.modules.map((row) => [row.module, row.urgency])).toEqual([
      ['kiosk', 'needs you'],
      ['greeter', 'needs you'],
      ['meshboard', 'moving'],
      ['board-types', 'in step'],
      ['core', 'in step'],
      ['site', 'in step'],
    ]);
    expect(read.modules[0]?.headline).toBe('failed at 9c1f0e2 since 2026-11-29T14:02Z · 1 of 14 tests · 77ab310 stays declared');
    expect(read.modules[0]?.remedy).toBe('tally log kiosk');
    expect(read.stuck).toEqual([expect.objectContaining({ node: 'gamma', module: 'greeter', count: 5, remedy: 'tally node show gamma' })]);
    expect(read.summary).toMatchObject({ modules: 6, inStep: 3, nodes: 3, away: 1 });
    expect(read.inStep).toBe(false);
    expect(read.workflows).toBe('http://temporal.test/namespaces/default/workflows/');
  });

  test('says once what agrees, where a row is to fit a table', async () => {
    const rows = [
      [
        'a',
        'source 77ab310 · built from 77ab310 · fit · declared on 2 · applied on 1, 1 outstanding (gamma)',
        '77ab310 fit · applied on 1 of 2, 1 outstanding (gamma)',
      ],
      ['b', 'source 77ab310 · built from 77ab310 · fit, 2nd try · declared on 0 of 2', '77ab310 fit, 2nd try · declared on 0 of 2'],
      ['c', 'source 4f2c1a9 · inspecting on builder-1 · declared on 3 · applied on 3', 'source 4f2c1a9 · inspecting on builder-1 · applied on 3'],
      ['d', 'source 4f2c1a9 · not built yet · declared on 1 · applied on 10', 'source 4f2c1a9 · not built yet · applied on 10 of 1'],
    ] as const;
    for (const [module, line] of rows) await situate(api.db, { module, head: COMMITS.fit, situation: 'applying', line, reason: 'r' });
    const read = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body);
    for (const [module, line, headline] of rows) expect(read.modules.find((row) => row.module === module)).toMatchObject({ line, headline });
  });

  test('counts what is held as a decision and no fault', async () => {
    await inStep(api.db, 'core');
    await situate(api.db, {
      module: 'kiosk',
      head: COMMITS.fit,
      situation: 'held',
      verdict: 'fit',
      line: 'source 77ab310 · held by ada',
      reason: 'held by ada: fair week',
    });
    const read = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body);
    expect(read.inStep).toBe(true);
    expect(read.modules.find((row) => row.module === 'kiosk')).toMatchObject({ urgency: 'held', headline: 'held by ada: fair week' });
  });

  test('raises an alarm when nobody reads the sources that are due', async () => {
    await inStep(api.db, 'core');
    await api.db.query(`update module set next_read_at = now() - interval '1 minute' where name = 'core'`);
    const status = async () => statusAnswer.parse((await api.call('GET', '/api/v1/status')).body);
    expect((await status()).alarms).toEqual([]);
    await api.db.query(`update module set next_read_at = now() - interval '3 minutes' where name = 'core'`);
    const read = await status();
    expect(read.alarms).toEqual([expect.objectContaining({ what: expect.stringContaining('sources are not read, that of core the longest') })]);
    expect(read.inStep).toBe(false);
    const { checks } = doctorAnswer.parse((await api.call('GET', '/api/v1/doctor')).body);
    expect(checks.find(({ what }) => what === 'sources')).toMatchObject({ isWell: false, says: expect.stringContaining('core for 18') });
  });

  test('raises an alarm when a comparison is owed for longer than two sweeps', async () => {
    await inStep(api.db, 'core');
    await api.db.query(`update module set facts_version = facts_version + 1, changed_at = now() - interval '5 minutes'`);
    const read = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body);
    expect(read.alarms).toEqual([expect.objectContaining({ what: expect.stringContaining('core') })]);
    expect(read.inStep).toBe(false);
  });

  test('shows a node that refused its declaration as one that needs a person', async () => {
    await api.db.query(
      `insert into node (name, broker_user, refused_reason, refused_since) values ('alpha', 'node-alpha', 'unknown version 9', now())`,
    );
    const read = statusAnswer.parse((await api.call('GET', '/api/v1/status')).body);
    expect(read.nodes[0]?.trouble).toMatchObject({ reason: 'refused its declaration: unknown version 9', remedy: 'tally node show alpha' });
    expect(read.inStep).toBe(false);
  });
});

describe('one module', () => {
  test('is shown with builds, placements, decisions and the page of its workflow', async () => {
    await aDay(api.db);
    const { body } = await api.call('GET', '/api/v1/modules/core');
    const read = moduleAnswer.parse(body);
    expect(read.builds).toEqual([expect.objectContaining({ build: 'build-core', verdict: 'fit' })]);
    expect(read.temporalUrl).toBe('http://temporal.test/namespaces/default/workflows/module%2Fcore');
    expect(moduleList.parse((await api.call('GET', '/api/v1/modules')).body).modules).toHaveLength(6);
  });

  test('is explained by the facts as they are now', async () => {
    await aDay(api.db);
    const read = whyAnswer.parse((await api.call('GET', '/api/v1/modules/greeter/why')).body);
    expect(read.facts[0]).toContain('source: main of https://git.example/greeter.git is at 77ab310');
    expect(read.facts).toContainEqual(expect.stringMatching(/^gamma: /));
  });

  test('that is not there is answered with the one that was meant', async () => {
    await inStep(api.db, 'kiosk');
    for (const path of ['/api/v1/modules/kiosc', '/api/v1/modules/kiosc/why', '/api/v1/modules/kiosc/log']) {
      const { status, body } = await api.call('GET', path);
      expect(status).toBe(404);
      expect(failure.parse(body).error).toBe('there is no module kiosc: did you mean kiosk?');
    }
  });
});

describe('one node', () => {
  test('is shown with what it was sent and holds', async () => {
    await aDay(api.db);
    const read = nodeAnswer.parse((await api.call('GET', '/api/v1/nodes/gamma')).body);
    expect(read.row.presence).toBe('up');
    expect(read.placements).toEqual([expect.objectContaining({ module: 'greeter', failing: expect.objectContaining({ count: 5 }) })]);
    expect(nodeList.parse((await api.call('GET', '/api/v1/nodes')).body).nodes.map((row) => row.presence)).toEqual(['up', 'away', 'up']);
  });

  test('that is not there is answered with the one that was meant', async () => {
    await aDay(api.db);
    const { status, body } = await api.call('GET', '/api/v1/nodes/gama');
    expect([status, failure.parse(body).error]).toEqual([404, 'there is no node gama: did you mean gamma?']);
  });
});

test('the plan says what would be made first, then what is declared where, and which nodes are behind', async () => {
  await aDay(api.db);
  await api.db.query(`insert into placement (module, node) values ('meshboard', 'alpha')`);
  await api.db.query(`update node set not_worked_out = 'port is not set', not_worked_out_since = now() where name = 'beta'`);
  const read = planAnswer.parse((await api.call('GET', '/api/v1/plan')).body);
  expect(read.steps[0]).toMatchObject({ module: 'meshboard', what: 'build', nodes: ['alpha'] });
  expect(read.nodes).toContainEqual(expect.objectContaining({ node: 'beta', state: 'not worked out', reason: 'port is not set' }));
});

describe('the log', () => {
  test('of a build that has ended comes whole from the registry', async () => {
    await inStep(api.db, 'kiosk');
    await answeredBuild(api.db, { id: 'build-1', module: 'kiosk', commit: COMMITS.failed, verdict: 'failed', log: 'sha256:log' });
    api.logs.set('sha256:log', '# fetch\n# run\nok\n# test\n1 of 14 failed\n');
    const read = logAnswer.parse((await api.call('GET', '/api/v1/modules/kiosk/log')).body);
    expect(read).toMatchObject({
      request: 'build-1',
      isWhole: true,
      verdict: 'failed',
      lines: ['# fetch', '# run', 'ok', '# test', '1 of 14 failed'],
    });
  });

  test('whose whole is gone is said to be', async () => {
    await inStep(api.db, 'kiosk');
    await answeredBuild(api.db, { id: 'build-1', module: 'kiosk', commit: COMMITS.failed, verdict: 'failed', log: 'sha256:gone' });
    const read = logAnswer.parse((await api.call('GET', '/api/v1/modules/kiosk/log?build=9c1f0e2')).body);
    expect(read.note).toMatch(/could not be read/);
    expect(read.isWhole).toBe(true);
  });

  test('that runs is followed from where the answer before ended', async () => {
    await inStep(api.db, 'kiosk');
    await api.db.query(
      `insert into request (id, kind, module, commit, closure, platform, body, state, taken_at, taken_by) values ('build-2', 'build', 'kiosk', $1, 'closure', 'linux-amd64', '{}', 'taken', now(), 'builder-1')`,
      [COMMITS.failed],
    );
    await api.db.query(`insert into log_line (request_id, attempt, number, text) values ('build-2', 1, 0, 'one'), ('build-2', 1, 1, 'two')`);
    const first = logAnswer.parse((await api.call('GET', '/api/v1/modules/kiosk/log')).body);
    expect(first).toMatchObject({ lines: ['one', 'two'], isWhole: false });
    await api.db.query(`insert into log_line (request_id, attempt, number, text) values ('build-2', 1, 2, 'three')`);
    const second = logAnswer.parse((await api.call('GET', `/api/v1/modules/kiosk/log?build=build-2&from=${first.next}`)).body);
    expect(second.lines).toEqual(['three']);
  });

  test('refuses a place that no answer gave', async () => {
    await inStep(api.db, 'kiosk');
    await answeredBuild(api.db, { id: 'build-1', module: 'kiosk', commit: COMMITS.failed, verdict: 'failed' });
    expect((await api.call('GET', '/api/v1/modules/kiosk/log?from=-1')).status).toBe(400);
  });
});

test('the doctor finds what is not well and says what to do', async () => {
  await aDay(api.db);
  const read = doctorAnswer.parse((await api.call('GET', '/api/v1/doctor')).body);
  const check = (what: string) => read.checks.find((one) => one.what === what);
  expect(check('store')?.isWell).toBe(true);
  expect(check('clock')?.isWell).toBe(true);
  expect(check('nodes')).toMatchObject({ isWell: false, says: expect.stringContaining('beta') });
  expect(check('builders')).toMatchObject({ isWell: false, remedy: expect.stringContaining('tally builder') });
  expect(read.isWell).toBe(false);
});

test('metrics count what is so', async () => {
  await aDay(api.db);
  const { body } = await api.call('GET', '/metrics');
  expect(body).toContain('tally_modules{situation="in step"} 3\n');
  expect(body).toContain('tally_nodes{presence="away"} 1\n');
  expect(body).toContain('tally_modules_needing_a_person 2\n');
});

test('health is that of the store', async () => {
  expect((await api.call('GET', '/healthz')).body).toEqual({ isWell: true });
});

test('what is not there is said in one line', async () => {
  const { status, body } = await api.call('GET', '/api/v1/nothing');
  expect([status, failure.parse(body).error]).toEqual([404, 'there is no GET /api/v1/nothing']);
});

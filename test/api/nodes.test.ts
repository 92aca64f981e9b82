/** A host that was installed anew, and credentials that are somebody else's: what the operator sees, and the verb that helps. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultTimes } from '../../src/domain/times';
import { nodeKeys, recordNodeBeats } from '../../src/inventory';
import { doctorAnswer, nodeAnswer } from '../../src/schema/api';
import { beat } from '../inventory/store';
import { startApi, type TestApi } from '../support/api';

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const beats = async (node: string, publicKey: string) => await recordNodeBeats(api.db, [beat(node, { publicKey })], new Date(), defaultTimes);

async function withAnotherKey(node: string): Promise<void> {
  await api.call('POST', '/api/v1/nodes', { node });
  await beats(node, 'the first');
  expect(await beats(node, 'another')).toEqual({ refused: [node] });
}

const trouble = async (node: string) => nodeAnswer.parse((await api.call('GET', `/api/v1/nodes/${node}`)).body).row.trouble;

test('another key of a node is shown with the verb that helps, and trusted by it', async () => {
  await withAnotherKey('alpha');
  expect(await trouble('alpha')).toMatchObject({ remedy: 'tally node trust alpha' });
  const { checks } = doctorAnswer.parse((await api.call('GET', '/api/v1/doctor')).body);
  expect(checks.find(({ what }) => what === 'nodes')).toMatchObject({ isWell: false, remedy: expect.stringContaining('tally node trust alpha') });
  expect((await api.call('POST', '/api/v1/nodes/alpha/trust', {})).status).toBe(400);
  expect((await api.call('POST', '/api/v1/nodes/alpha/trust', { why: 'new disk' })).status).toBe(200);
  expect(await nodeKeys(api.db, ['alpha'])).toEqual(new Map([['alpha', 'another']]));
  expect(await trouble('alpha')).toBeNull();
  expect(await beats('alpha', 'another')).toEqual({ refused: [] });
  expect((await api.call('POST', '/api/v1/nodes/alpha/trust', { why: 'again' })).body).toMatchObject({
    error: expect.stringContaining('no other key'),
  });
  expect(await api.db.query(`select who, why from intent where verb = 'node trust'`)).toEqual([{ who: 'ada', why: 'new disk' }]);
});

test('a renewed node has a new account, and whoever had the old one is no alarm any more', async () => {
  await withAnotherKey('beta');
  const { status, body } = await api.call('POST', '/api/v1/nodes/beta/renew', { why: 'the file was on a stolen laptop' });
  expect([status, body]).toMatchObject([200, { says: expect.stringContaining('beta.json') }]);
  expect(api.accounts.filter((node) => node === 'beta')).toHaveLength(2);
  expect(JSON.parse(readFileSync(join(api.home, 'nodes', 'beta.json'), 'utf8'))).toMatchObject({ node: 'beta' });
  expect(await nodeKeys(api.db, ['beta'])).toEqual(new Map([['beta', 'the first']]));
  expect(await trouble('beta')).toBeNull();
  expect((await api.call('POST', '/api/v1/nodes/nobody/renew', { why: 'x' })).status).toBe(404);
});

import { createHmac } from 'node:crypto';
import { canonicalRepository } from '../../src/api/repositories';
import { failure, webhookAnswer } from '../../src/schema/api';
import { startApi, type TestApi } from '../support/api';

const REPOSITORY = 'https://git.example/home/kiosk.git';

let api: TestApi;
let secret: string;

beforeAll(async () => {
  api = await startApi();
  const added = [
    { module: 'kiosk', repository: REPOSITORY },
    { module: 'kiosk-next', repository: 'git@git.example:home/kiosk.git', ref: 'next' },
    { module: 'greeter', repository: 'https://git.example/home/greeter.git' },
  ];
  for (const module of added) await api.call('POST', '/api/v1/modules', module);
  secret = webhookAnswer.parse((await api.call('POST', '/api/v1/modules/kiosk/webhook', {})).body).secret;
});

beforeEach(() => {
  api.events.length = 0;
});

afterAll(async () => {
  await api.close();
});

const payload = JSON.stringify({
  ref: 'refs/heads/main',
  after: 'f'.repeat(40),
  repository: {
    full_name: 'home/kiosk',
    clone_url: REPOSITORY,
    ssh_url: 'git@git.example:home/kiosk.git',
    html_url: 'https://git.example/home/kiosk',
  },
});
const gitlabPayload = JSON.stringify({
  project: { git_http_url: REPOSITORY, git_ssh_url: 'git@git.example:home/kiosk.git', web_url: 'https://git.example/home/kiosk' },
});

const hmac = (body: string, key = secret): string => createHmac('sha256', key).update(body).digest('hex');

type Headers = Record<string, string>;
const github = (body: string, headers: Headers = {}): Headers => ({
  'x-github-event': 'push',
  'x-hub-signature-256': `sha256=${hmac(body)}`,
  ...headers,
});
const gitea = (body: string): Headers => ({ 'x-gitea-event': 'push', 'x-gitea-signature': hmac(body) });
const gitlab = (): Headers => ({ 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': secret });

async function send(forge: string, body: string, headers: Headers): Promise<{ status: number; body: unknown }> {
  return await api.call('POST', `/hooks/${forge}`, body, { authorization: '', ...headers });
}

describe('an event that is proven', () => {
  test.each([
    ['github', payload, () => github(payload)],
    ['gitea', payload, () => gitea(payload)],
    ['gitlab', gitlabPayload, gitlab],
  ])('of %s makes git be read again, for every module of its repository', async (forge, body, headers) => {
    const answer = await send(forge, body, headers());
    expect(answer).toMatchObject({ status: 202, body: { modules: ['kiosk', 'kiosk-next'] } });
    expect(api.events).toEqual([['kiosk', 'kiosk-next']]);
  });

  test('may come as a form, as GitHub sends unless told otherwise', async () => {
    const form = new URLSearchParams({ payload }).toString();
    const answer = await send('github', form, github(form, { 'content-type': 'application/x-www-form-urlencoded' }));
    expect(answer.status).toBe(202);
  });

  test.each([
    ['github', payload, () => github(payload, { 'x-github-event': 'ping' })],
    ['gitea', payload, () => ({ ...gitea(payload), 'x-gitea-event': 'ping' })],
  ])('that is a ping of %s is answered and reads nothing', async (forge, body, headers) => {
    expect(await send(forge, body, headers())).toMatchObject({ status: 200, body: { says: 'pong: address and secret are right' } });
    expect(api.events).toEqual([]);
  });

  test('of another kind is taken and does nothing', async () => {
    expect(await send('github', payload, github(payload, { 'x-github-event': 'issues' }))).toMatchObject({ status: 200, body: { modules: [] } });
    expect(api.events).toEqual([]);
  });

  test('changes no head, whatever commit it names', async () => {
    await send('github', payload, github(payload));
    expect(await api.db.query('select head_commit from module where head_commit is not null')).toEqual([]);
  });
});

const other = JSON.stringify({ repository: { clone_url: 'https://git.example/home/unknown.git' } });
const greeter = JSON.stringify({ repository: { clone_url: 'https://git.example/home/greeter.git' } });
const huge = JSON.stringify({ repository: { clone_url: REPOSITORY }, filler: 'x'.repeat(1 << 20) });
const deep = `{"repository":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;

/** What is sent, how, and the status that it gets. */
const bad: Array<[string, string, string, () => Headers, number]> = [
  ['no signature', 'github', payload, () => ({ 'x-github-event': 'push' }), 401],
  ['a signature of SHA-1 alone', 'github', payload, () => ({ 'x-github-event': 'push', 'x-hub-signature': `sha1=${'0'.repeat(40)}` }), 401],
  ['a wrong signature', 'github', payload, () => ({ 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${hmac(payload, 'guess')}` }), 401],
  [
    'a signature of another body',
    'github',
    payload,
    () => ({ 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${hmac(`${payload} `)}` }),
    401,
  ],
  ['a signature that is too short', 'github', payload, () => ({ 'x-github-event': 'push', 'x-hub-signature-256': 'sha256=abcd' }), 401],
  [
    'a signature that is no hexadecimal',
    'github',
    payload,
    () => ({ 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${'z'.repeat(64)}` }),
    401,
  ],
  [
    'a wrong signature of a ping',
    'github',
    payload,
    () => ({ 'x-github-event': 'ping', 'x-hub-signature-256': `sha256=${hmac(payload, 'guess')}` }),
    401,
  ],
  ['a wrong signature', 'gitea', payload, () => ({ 'x-gitea-event': 'push', 'x-gitea-signature': hmac(payload, 'guess') }), 401],
  ['no token', 'gitlab', gitlabPayload, () => ({ 'x-gitlab-event': 'Push Hook' }), 401],
  ['a wrong token', 'gitlab', gitlabPayload, () => ({ 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': `${secret}x` }), 401],
  ['the start of the token', 'gitlab', gitlabPayload, () => ({ 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': secret.slice(0, -1) }), 401],
  ['a token of many kilobytes', 'gitlab', gitlabPayload, () => ({ 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': 'x'.repeat(4_000) }), 401],
  ['an unknown repository', 'github', other, () => github(other), 404],
  ['a repository whose module has no webhook', 'github', greeter, () => github(greeter), 401],
  ['no event header', 'github', payload, () => ({ 'x-hub-signature-256': `sha256=${hmac(payload)}` }), 400],
  ['the headers of another forge', 'gitlab', payload, () => github(payload), 400],
  ['no JSON', 'github', 'kiosk', () => github('kiosk'), 400],
  ['JSON that breaks off', 'github', '{"repository":', () => github('{"repository":'), 400],
  ['JSON that is no object', 'github', '[1,2]', () => github('[1,2]'), 400],
  ['null', 'github', 'null', () => github('null'), 400],
  ['no body', 'github', '', () => github(''), 400],
  ['a repository that is a number', 'github', '{"repository":7}', () => github('{"repository":7}'), 400],
  ['addresses that are objects', 'github', '{"repository":{"clone_url":{"a":1}}}', () => github('{"repository":{"clone_url":{"a":1}}}'), 400],
  ['JSON as deep as it is long', 'github', deep, () => github(deep), 400],
  ['a body of more than a mebibyte', 'github', huge, () => github(huge), 413],
  ['XML', 'github', payload, () => github(payload, { 'content-type': 'text/xml' }), 415],
  ['a form without its payload', 'github', 'a=b', () => github('a=b', { 'content-type': 'application/x-www-form-urlencoded' }), 400],
];

describe('an event that is not', () => {
  test.each(bad)('%s (%s): is refused clearly and nothing else happens', async (_, forge, body, headers, expected) => {
    const before = await api.db.query('select * from module order by name');
    const answer = await send(forge, body, headers());
    expect(answer.status).toBe(expected);
    const { error } = failure.parse(answer.body);
    expect(error).not.toContain('\n');
    expect(error).not.toContain(secret);
    expect(api.events).toEqual([]);
    expect(await api.db.query('select * from module order by name')).toEqual(before);
  });

  test('a forge that is none is a 404', async () => {
    expect((await send('bitbucket', payload, github(payload))).status).toBe(404);
    expect((await api.call('GET', '/hooks/github')).status).toBe(404);
  });

  test('a store that is away is a 503, so that the forge sends it again', async () => {
    const away = await startApi();
    await away.db.close();
    const response = await fetch(`${away.url}/hooks/github`, {
      method: 'POST',
      body: payload,
      headers: { 'content-type': 'application/json', ...github(payload) },
    });
    expect(response.status).toBeGreaterThanOrEqual(500);
    await away.close().catch(() => undefined);
  });
});

test.each([
  ['https://git.example/home/kiosk.git', 'git.example/home/kiosk'],
  ['https://user:word@Git.Example:8443/Home/Kiosk/', 'git.example/home/kiosk'],
  ['ssh://git@git.example:2222/home/kiosk.git', 'git.example/home/kiosk'],
  ['git@git.example:home/kiosk.git', 'git.example/home/kiosk'],
  ['git.example:home/kiosk', 'git.example/home/kiosk'],
  ['file:///srv/git/kiosk.git', 'srv/git/kiosk'],
  ['/srv/git/kiosk.git', 'srv/git/kiosk'],
  ['https://%', ''],
])('the address %s is that of %s', (address, repository) => {
  expect(canonicalRepository(address)).toBe(repository);
});

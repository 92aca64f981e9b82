/** The providers that ship, by real hosts: a module on one node has a database and a route made for it on another one. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { demoRepository } from '../../src/demo/repositories';
import { aptInstall } from '../../src/servers/apt';
import { Ports } from '../../src/servers/ports';
import { onPath } from '../../src/servers/run';
import { eventually } from '../support/eventually';
import { type WholeMesh, wholeMesh } from './mesh';
import { findExposures } from './secrets';

const TIMES = {
  TALLY_TIMES_READ_REFS: '2000',
  TALLY_TIMES_SWEEP: '2000',
  TALLY_TIMES_HOST_BEAT: '1000',
  TALLY_TIMES_RETRY_FIRST: '500',
  TALLY_TIMES_RETRY_MOST: '4000',
};
const WITHIN = { timeoutMs: 120_000, everyMs: 200 };
const ADDRESS = { alpha: '127.0.0.1', beta: '127.0.0.2' } as const;

let whole: WholeMesh;
let port: { postgres: number; proxy: number; notes: number };

beforeAll(async () => {
  const missing = [
    ...(existsSync('/usr/sbin/nginx') || onPath('nginx') !== null ? [] : ['nginx-light']),
    ...(existsSync('/usr/lib/postgresql') || onPath('initdb') !== null ? [] : ['postgresql']),
  ];
  const reason = missing.length === 0 ? null : await aptInstall(missing);
  if (reason !== null) throw new Error(reason);
  whole = await wholeMesh(TIMES);
  const ports = new Ports(whole.dataDir);
  port = { postgres: await ports.free('postgres'), proxy: await ports.free('proxy'), notes: await ports.free('notes') };
  const folder = join(whole.dataDir, 'git');
  mkdirSync(folder);
  for (const [module, example] of [
    ['postgres', 'providers/postgres'],
    ['proxy', 'providers/proxy'],
    ['notes', 'notes'],
  ] as const) {
    const { address } = await demoRepository(folder, join(__dirname, '..', '..', 'examples', example), module);
    await whole.tally('module', 'add', module, address);
  }
  for (const node of ['alpha', 'beta'] as const) {
    const facts = Object.entries(port).flatMap(([name, value]) => ['--set', `${name}.port=${value}`]);
    await whole.tally('node', 'add', node, '--address', ADDRESS[node], ...facts);
    await whole.local.host(node).start();
  }
  // PostgreSQL of root runs as another user, who must come through.
  for (const place of [whole.dataDir, whole.local.places.nodes, join(whole.local.places.nodes, 'alpha'), rootOf('alpha')]) chmodSync(place, 0o755);
  await eventually(async () => (await whole.mesh.status()).modules.every((row) => row.verdict === 'fit'), WITHIN);
}, 180_000);

afterAll(() => whole?.close(), 60_000);

function rootOf(node: string): string {
  return join(whole.local.places.nodes, node, 'root');
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** As a browser asks: by name at the proxy, or at the service itself. */
function ask(at: { host: string; port: number; name?: string; body?: string }): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = at.name === undefined ? {} : { host: at.name };
    const asked = request({ host: at.host, port: at.port, method: at.body === undefined ? 'GET' : 'POST', headers, timeout: 5_000, agent: false });
    asked.once('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.once('error', reject);
    asked.once('response', (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.once('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    asked.end(at.body);
  });
}

const atTheService = (body?: string) => ask({ host: ADDRESS.beta, port: port.notes, ...(body === undefined ? {} : { body }) });
const atTheProxy = () => ask({ host: ADDRESS.alpha, port: port.proxy, name: 'notes.home' });

const isInStep = (...modules: string[]) =>
  eventually(async () => {
    // What was compared before the last change of a fact says nothing about it.
    const behind = await whole.db.query<{ name: string; says: string }>(
      `select name, line || ' · ' || reason as says from module where name = any ($1) and (not in_step or facts_version <> compared_version)`,
      [modules],
    );
    if (behind.length > 0) throw new Error(behind.map(({ name, says }) => `${name}: ${says}`).join('; '));
  }, WITHIN);

function boundTo(): Record<string, string> {
  const text = readFileSync(join(rootOf('beta'), 'etc/notes/database.env'), 'utf8');
  return Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => line.split('=', 2) as [string, string]),
  );
}

function canLogIn(bound: Record<string, string>): boolean {
  try {
    execFileSync('psql', ['-X', '-w', '-c', 'select 1'], {
      env: { ...process.env, ...bound, PGCONNECT_TIMEOUT: '5' },
      stdio: 'ignore',
      timeout: 20_000,
    });
    return true;
  } catch {
    return false;
  }
}

test('a module has its database on another node and its route in the proxy; rotated it goes on; unassigned, both are taken away', async () => {
  await expect(whole.tally('assign', 'notes', 'beta')).rejects.toThrow(
    /requires postgres-database \(as db\), which nothing within reach of beta provides: postgres would/,
  );
  await whole.tally('assign', 'postgres', 'alpha');
  await expect(whole.tally('assign', 'notes', 'beta')).rejects.toThrow(/requires http-route \(as route\)/);
  await whole.tally('assign', 'proxy', 'alpha');
  await isInStep('postgres', 'proxy');
  await whole.tally('assign', 'notes', 'beta');
  await isInStep('notes', 'postgres', 'proxy');

  expect(JSON.parse((await atTheService('milk')).body)).toEqual({ notes: ['milk'], at: `http://notes.home:${port.proxy}/` });
  expect((await eventually(async () => ((await atTheProxy()).status === 200 ? atTheProxy() : null), WITHIN)).body).toContain('milk');
  expect((await ask({ host: ADDRESS.alpha, port: port.proxy, name: 'other.home' })).status).toBe(404);

  const first = boundTo();
  expect(statSync(join(rootOf('beta'), 'etc/notes/database.env')).mode & 0o777).toBe(0o600);
  expect(first).toMatchObject({ PGHOST: ADDRESS.alpha, PGUSER: 'notes-db' });
  expect(canLogIn(first)).toBe(true);
  const [clear] = await whole.db.query<{ count: number }>('select count(*)::int from declaration where content::text like $1', [
    `%${first.PGPASSWORD}%`,
  ]);
  expect(clear?.count).toBe(0);

  await expect(whole.tally('unassign', 'postgres', 'alpha')).rejects.toThrow(
    /postgres on alpha provides postgres-database, which notes on beta requires/,
  );

  await whole.tally('instance', 'rotate', 'notes-db', '--why', 'a laptop was lost');
  await eventually(() => boundTo().PGPASSWORD !== first.PGPASSWORD, WITHIN);
  await isInStep('notes', 'postgres');
  expect(canLogIn(boundTo())).toBe(true);
  expect(canLogIn(first)).toBe(false);
  expect(JSON.parse((await atTheService('bread')).body)).toMatchObject({ notes: ['milk', 'bread'] });

  expect(await findExposures({ whole, modules: [], nodes: ['alpha', 'beta'] })).toEqual([]);

  const last = boundTo();
  await whole.tally('unassign', 'notes', 'beta');
  await eventually(async () => (await atTheProxy()).status === 404, WITHIN);
  await eventually(() => !canLogIn(last), WITHIN);
  await isInStep('notes', 'postgres', 'proxy');
  await eventually(() => !existsSync(join(rootOf('beta'), 'etc/notes')), WITHIN);
  await expect(atTheService()).rejects.toThrow();
  expect(existsSync(join(rootOf('alpha'), 'etc/tally-postgres/notes-db.password'))).toBe(false);
  // What was in it is kept for whoever unassigned it by mistake.
  expect(readdirSync(join(rootOf('alpha'), 'var/lib/tally-postgres/kept'))).toEqual([expect.stringMatching(/^notes-db-.*\.dump$/)]);
  await whole.tally('unassign', 'postgres', 'alpha');
  await eventually(() => !canLogIn({ ...last, PGUSER: 'postgres' }) && !existsSync(join(rootOf('alpha'), 'opt/tally-postgres')), WITHIN);
}, 400_000);

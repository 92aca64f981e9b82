import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Control, startControl } from '../../src/control';
import { stopServices } from '../../src/host';
import { addNode, assign, declareBuild, nodeDetail, nodeStatuses, rotateInstance, trustKey, unassign } from '../../src/inventory';
import { createSealing, declareNode, ensureNodeAccount, nodeAccount } from '../../src/link';
import { A, fitBuild, module } from '../inventory/store';
import { type ControlWorld, controlWorld } from '../support/control';
import { eventually } from '../support/eventually';
import { temporaryFolder } from '../support/repositories';

/** A secret on its whole way: made by the control plane, sealed in the store, opened by the hosts of two nodes. */

const why = { who: 'test', why: 'a test' };
const waiting = { timeoutMs: 30_000 };
const repository = join(__dirname, '..', '..');
const folder = temporaryFolder();
const machines = join(folder.dir, 'machines');
const made = join(folder.dir, 'databases');
const hosts = new Map<string, ChildProcess>();

let world: ControlWorld;
let control: Control;

beforeAll(async () => {
  mkdirSync(made, { recursive: true });
  world = await controlWorld({ retryFirst: 500 });
  const ensure = { ensureTemporal: async () => undefined, runningModules: async () => new Set<string>(), connections: () => 0 };
  control = await startControl(world.deps, ensure);
  world.atEnd(() => control.stop());
});
afterAll(async () => {
  await Promise.all([...hosts.keys()].map(end));
  await Promise.all(['alpha', 'beta'].map((node) => stopServices(join(machines, node, 'state'))));
  await world.close();
  folder.remove();
});

/** A host as a process of its own, with an account that may do no more than a node may. */
async function start(node: string): Promise<void> {
  const credentials = join(machines, node, 'credentials.json');
  if (!existsSync(credentials)) {
    mkdirSync(join(machines, node, 'root'), { recursive: true });
    const { user, password } = await ensureNodeAccount(world.management, node);
    await declareNode(world.link, node);
    await addNode(world.db, { name: node, site: 'home', facts: {}, brokerUser: nodeAccount(world.broker.amqpUrl, node) });
    const url = new URL(world.broker.amqpUrl);
    Object.assign(url, { username: encodeURIComponent(user), password });
    const content = { mesh: 'home', node, amqpUrl: url.href, registryUrl: 'http://127.0.0.1:1', meshPublicKey: world.deps.signingKey.publicKey };
    writeFileSync(credentials, JSON.stringify(content), { mode: 0o600 });
  }
  const args = ['-r', join(repository, 'test/support/typescript.cjs'), join(repository, 'workers/host.ts'), '--credentials', credentials];
  const host = spawn(process.execPath, [...args, '--root', join(machines, node, 'root'), '--state', join(machines, node, 'state')], {
    env: { PATH: process.env.PATH, TALLY_TIMES_HOST_BEAT: '300', TALLY_TIMES_SERVICE_SETTLE: '100' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  hosts.set(node, host);
}

async function end(node: string): Promise<void> {
  const host = hosts.get(node);
  if (host === undefined || host.exitCode !== null || host.signalCode !== null) return;
  const ended = once(host, 'exit');
  host.kill('SIGKILL');
  await ended;
}

const at = (node: string, path: string): string => join(machines, node, 'root', path);
const held = (file: string): string | null => (existsSync(file) ? readFileSync(file, 'utf8') : null);

/** A database is a file outside of the node's root that holds what its owner logs in with. */
const provider = {
  resources: [],
  provides: [
    {
      instantiation: 'database',
      secrets: ['password'],
      resources: [
        { file: { path: '/db/${instance.name}.pass', mode: '0600', content: '${secret.password}' } },
        {
          action: {
            name: 'database-${instance.name}',
            run: ['sh', '-c', `cat "$0/db/$1.pass" >${made}/$1`, '${root}', '${instance.name}'],
            unless: ['sh', '-c', `cmp -s "$0/db/$1.pass" ${made}/$1`, '${root}', '${instance.name}'],
            undo: ['sh', '-c', `cmp -s "$0/db/$1.pass" ${made}/$1 && rm ${made}/$1`, '${root}', '${instance.name}'],
          },
        },
      ],
      gives: { name: '${instance.name}', password: '${secret.password}' },
    },
  ],
};
const consumer = {
  requires: [{ instantiation: 'database', as: 'db' }],
  resources: [
    { file: { path: '/etc/app.env', mode: '0600', content: 'DB=${bind.db.name}\nPASSWORD=${bind.db.password}\n' } },
    {
      service: {
        name: 'app',
        run: ['sh', '-c', 'umask 077; printf %s "$PASSWORD" >"$0/seen"; sleep 1000; :', '${root}'],
        environmentFile: '/etc/app.env',
      },
    },
  ],
};

test('is the same for who makes and who holds it, is rotated, outlives a host that is installed anew, and goes', async () => {
  const { db } = world;
  for (const node of ['alpha', 'beta']) await start(node);
  for (const name of ['pg', 'app']) await module(db, name);
  const builds = { pg: await fitBuild(db, 'pg', A, provider), app: await fitBuild(db, 'app', A, consumer) };
  await assign(db, 'pg', 'alpha', why);
  await declareBuild(db, { module: 'pg', buildId: builds.pg, nodes: ['alpha'], by: 'auto' });
  await assign(db, 'app', 'beta', why);
  await eventually(async () => (await declareBuild(db, { module: 'app', buildId: builds.app, nodes: ['beta'], by: 'auto' })) === 1, waiting);
  const secret = await eventually(() => held(at('beta', 'etc/app.env'))?.match(/^DB=app-db\nPASSWORD=([\w-]{43})\n$/)?.[1] ?? null, waiting);
  expect(held(join(made, 'app-db'))).toBe(secret);
  await eventually(() => held(at('beta', 'seen')) === secret, waiting);

  await rotateInstance(db, world.deps.sealing, 'app-db', why);
  await eventually(() => held(join(made, 'app-db')) !== secret, waiting);
  const next = await eventually(
    () =>
      held(at('beta', 'etc/app.env'))
        ?.match(/PASSWORD=(.*)\n/)?.[1]
        ?.replace(secret, '') || null,
    waiting,
  );
  expect(held(join(made, 'app-db'))).toBe(next);
  await eventually(() => held(at('beta', 'seen')) === next, waiting);

  await end('beta');
  await stopServices(join(machines, 'beta', 'state'));
  rmSync(join(machines, 'beta', 'state'), { recursive: true });
  rmSync(at('beta', 'etc/app.env'));
  await start('beta');
  const { sealKey } = await eventually(async () => {
    const detail = await nodeDetail(db, 'beta');
    return detail?.keyRefused == null ? null : detail;
  }, waiting);
  expect(held(at('beta', 'etc/app.env'))).toBeNull();
  await trustKey(db, 'beta', why);
  await eventually(() => held(at('beta', 'etc/app.env'))?.includes(`PASSWORD=${next}`) ?? false, waiting);
  expect((await nodeDetail(db, 'beta'))?.sealKey).not.toBe(sealKey);

  await eventually(async () => (await world.count("placement where module = 'app' and is_applied")) === 1, waiting);
  expect(await exposures(secret, next)).toEqual([]);

  // Sealed by another mesh.key: whoever asks about the node is told, and it heals once the key is back.
  const stored = await db.query<{ version: number; sealed: string }>('select version, sealed from credential');
  await db.query('update credential set sealed = $1', [createSealing(randomBytes(32)).keep('x', 'credential')]);
  await db.query('delete from sealed_copy');
  await db.query(`update node set version = version + 1 where name = 'beta'`);
  const trouble = async () => (await nodeStatuses(db, new Date(), world.deps.times)).find((one) => one.node === 'beta')?.sendTrouble?.reason ?? null;
  expect(await eventually(trouble, waiting)).toMatch(
    /^this mesh\.key does not open what is stored sealed of credential\/.*: put the mesh's own key file back/,
  );
  for (const { version, sealed } of stored) await db.query('update credential set sealed = $2 where version = $1', [version, sealed]);
  await eventually(async () => (await trouble()) === null, waiting);

  await unassign(db, 'app', 'beta', why);
  await eventually(
    () => held(at('beta', 'etc/app.env')) === null && held(join(made, 'app-db')) === null && held(at('alpha', 'db/app-db.pass')) === null,
    waiting,
  );
  await eventually(async () => (await world.count('credential')) === 0, waiting);
}, 120_000);

/** Null of what is no file, and of one that a host put away between listing and reading: it writes beside and renames. */
function statAndText(file: string): { mode: number; text: string } | null {
  try {
    const stat = statSync(file);
    return stat.isFile() ? { mode: stat.mode, text: readFileSync(file, 'latin1') } : null;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/** Where one of the secrets stands but in files that are their owner's alone. */
async function exposures(...secrets: string[]): Promise<string[]> {
  const tables = await world.db.query<{ name: string }>("select tablename as name from pg_tables where schemaname = 'public'");
  const found: string[] = [];
  for (const secret of secrets) {
    for (const { name } of tables)
      if ((await world.count(`"${name}" t where t::text like '%' || $1 || '%'`, [secret])) > 0) found.push(`table ${name}`);
    for (const path of readdirSync(machines, { recursive: true }) as string[]) {
      const file = statAndText(join(machines, path));
      if (file === null || !file.text.includes(secret)) continue;
      if ((file.mode & 0o077) !== 0 || !/root\/(etc\/app\.env|db\/app-db\.pass|seen)$/.test(path)) found.push(path);
    }
    for (const pid of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
      try {
        if (readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(secret)) found.push(`the command line of process ${pid}`);
      } catch {
        // It has ended.
      }
    }
  }
  return found;
}

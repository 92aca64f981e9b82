import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { connect } from 'amqplib';
import { Client } from 'pg';
import { plainReporter, type ServerAddresses, startServers, stopLeftovers } from '../../src/servers';
import { newDataDir } from '../support/dataDir';
import { eventually } from '../support/eventually';

const silent = plainReporter(new Writable({ write: (_chunk, _encoding, done) => done() }));

/** What tells us where a server answers must not answer for these tests. */
const FOUND_BY = ['TEMPORAL_ADDRESS', 'DATABASE_URL', 'AMQP_URL', 'AMQP_MANAGEMENT_URL', 'REGISTRY_URL'];
const kept = Object.fromEntries(FOUND_BY.map((name) => [name, process.env[name]]));
let dataDir: string;

beforeEach(() => {
  for (const name of FOUND_BY) delete process.env[name];
  dataDir = newDataDir();
});

afterEach(async () => {
  await stopLeftovers(dataDir);
  rmSync(dataDir, { recursive: true, force: true });
  for (const [name, value] of Object.entries(kept)) if (value !== undefined) process.env[name] = value;
});

describe('the servers of a data directory', () => {
  test('listen on loopback only, and stopping leaves none of them', async () => {
    const servers = await startServers({ dataDir, reporter: silent });
    const pids = pidsOf(dataDir);
    const ports = Object.values(rememberedPorts());
    expect([...pids.keys()].sort()).toEqual(['epmd', 'postgres', 'rabbitmq', 'registry', 'temporal']);
    const listening = listeners();
    for (const port of ports) expect([port, listening.get(port)]).toEqual([port, expect.arrayContaining(['loopback'])]);
    for (const port of ports) expect([port, listening.get(port)]).not.toEqual([port, expect.arrayContaining(['beyond'])]);

    await servers.stop();
    for (const pid of pids.values()) expect(isAlive(pid)).toBe(false);
    for (const port of ports) expect([port, listeners().get(port)]).toEqual([port, undefined]);
  }, 120_000);

  test('answer at the same addresses with the same data at the next start, and without it after fresh', async () => {
    const only = ['postgres', 'rabbitmq'] as const;
    const first = await startServers({ dataDir, reporter: silent, only: [...only] });
    await sql(first.addresses, 'create table kept (n int)');
    await declare(first.addresses, 'kept');
    await first.stop();

    const second = await startServers({ dataDir, reporter: silent, only: [...only] });
    expect(second.addresses).toEqual(first.addresses);
    await sql(second.addresses, 'select n from kept');
    await declare(second.addresses, 'kept', { passive: true });
    await second.stop();

    const third = await startServers({ dataDir, reporter: silent, only: ['postgres'], fresh: true });
    await expect(sql(third.addresses, 'select n from kept')).rejects.toThrow(/does not exist/);
    await third.stop();
  }, 120_000);

  test('are not run twice: a second start is told who runs them', async () => {
    const servers = await startServers({ dataDir, reporter: silent, only: ['registry'] });
    await expect(startServers({ dataDir, reporter: silent, only: ['registry'] })).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringContaining(`process ${process.pid}`),
    });
    await servers.stop();
  });

  test('of two data directories run side by side', async () => {
    const other = newDataDir();
    const start = (dir: string) => startServers({ dataDir: dir, reporter: silent, only: ['registry', 'rabbitmq'] });
    const both = await Promise.all([start(dataDir), start(other)]);
    await Promise.all(both.map(({ addresses }) => declare(addresses, 'mine')));
    expect(both[0].addresses.amqpUrl).not.toBe(both[1].addresses.amqpUrl);
    await Promise.all(both.map((servers) => servers.stop()));
    rmSync(other, { recursive: true });
  }, 120_000);

  test('outlive the kill of who started them, and the next start adopts them', async () => {
    const parent = startElsewhere(dataDir, ['postgres', 'registry', 'rabbitmq']);
    await eventually(() => parent.said().includes('up'), { timeoutMs: 90_000 });
    const before = pidsOf(dataDir);
    parent.child.kill('SIGKILL');
    await eventually(() => parent.child.signalCode === 'SIGKILL');

    const servers = await startServers({ dataDir, reporter: silent, only: ['postgres', 'registry', 'rabbitmq'] });
    expect(pidsOf(dataDir)).toEqual(before);
    await sql(servers.addresses, 'select 1');
    await servers.stop();
    for (const pid of before.values()) expect(isAlive(pid)).toBe(false);
  }, 120_000);

  test('that were left and should run otherwise now are replaced', async () => {
    const parent = startElsewhere(dataDir, ['rabbitmq']);
    await eventually(() => parent.said().includes('up'), { timeoutMs: 90_000 });
    const before = pidsOf(dataDir).get('rabbitmq');
    parent.child.kill('SIGKILL');
    await eventually(() => parent.child.signalCode === 'SIGKILL');

    const servers = await startServers({ dataDir, reporter: silent, only: ['rabbitmq'], consumerTimeoutMs: 61_000 });
    expect(pidsOf(dataDir).get('rabbitmq')).not.toBe(before);
    expect(readFileSync(join(dataDir, 'servers', 'rabbitmq', 'rabbitmq.conf'), 'utf8')).toContain('consumer_timeout = 61000');
    await servers.stop();
  }, 120_000);

  test('are not stopped by a Ctrl-C in the terminal of who started them, but by who started them', async () => {
    const parent = startElsewhere(dataDir, ['registry']);
    await eventually(() => parent.said().includes('up'), { timeoutMs: 30_000 });
    const pid = pidsOf(dataDir).get('registry');
    const [, group] = readFileSync(`/proc/${pid}/stat`, 'utf8').match(/\) \S \d+ (\d+)/) ?? [];
    expect(Number(group)).toBe(pid);
    parent.child.kill('SIGINT');
    await eventually(() => parent.child.exitCode === 0);
    expect(isAlive(pid ?? 0)).toBe(false);
  }, 60_000);
});

describe('a data directory that only root can enter', () => {
  test('has what another user must reach elsewhere, says where, and takes it along when it goes', async () => {
    chmodSync(dataDir, 0o700);
    const out = new PassThrough();
    const first = await startServers({ dataDir, reporter: plainReporter(out), only: ['postgres'] });
    await sql(first.addresses, 'create table kept (n int)');
    await first.stop();
    const isRoot = process.getuid?.() === 0;
    const elsewhere = /data in (\/var\/lib\/tally\/\w+)\/postgres: user \w+ cannot enter/.exec(String(out.read()))?.[1];
    expect(elsewhere !== undefined).toBe(isRoot);

    const second = await startServers({ dataDir, reporter: silent, only: ['postgres'] });
    await sql(second.addresses, 'select n from kept');
    await second.stop();

    rmSync(dataDir, { recursive: true });
    const other = await startServers({ dataDir, reporter: silent, only: ['registry'] });
    await other.stop();
    expect(existsSync(elsewhere ?? '/nowhere')).toBe(false);
  }, 60_000);

  test('after it was open to all is told apart from one without data', async () => {
    const first = await startServers({ dataDir, reporter: silent, only: ['postgres'] });
    await first.stop();
    chmodSync(dataDir, 0o700);
    const again = startServers({ dataDir, reporter: silent, only: ['postgres'] });
    if (process.getuid?.() === 0) await expect(again).rejects.toMatchObject({ kind: 'usage', message: expect.stringContaining('any more') });
    else await (await again).stop();
  }, 60_000);
});

describe('a server that a variable names', () => {
  test('is used as it is, and not stopped', async () => {
    const own = await startServers({ dataDir, reporter: silent, only: ['registry'] });
    process.env.REGISTRY_URL = own.addresses.registryUrl;
    const otherDir = newDataDir();
    const found = await startServers({ dataDir: otherDir, reporter: silent, only: ['registry'] });
    expect(found.addresses.registryUrl).toBe(own.addresses.registryUrl);
    await found.stop();
    rmSync(otherDir, { recursive: true });
    await expect(fetch(`${own.addresses.registryUrl}/v2/`)).resolves.toMatchObject({ status: 200 });
    await own.stop();
  });

  test.each([
    ['TEMPORAL_ADDRESS', '127.0.0.1:9', 'temporal'],
    ['DATABASE_URL', 'postgresql://me:hidden@127.0.0.1:9/x', 'postgres'],
    ['AMQP_URL', 'amqp://me:hidden@127.0.0.1:9', 'rabbitmq'],
    ['REGISTRY_URL', 'http://127.0.0.1:9', 'registry'],
  ] as const)(
    'by %s and does not answer is named, without its password',
    async (variable, url, name) => {
      process.env[variable] = url;
      const error = await startServers({ dataDir, reporter: silent, only: [name] }).then(
        () => null,
        (failed: Error) => failed,
      );
      expect(error).toMatchObject({ kind: 'usage', message: expect.stringMatching(new RegExp(`^${variable}.*127\\.0\\.0\\.1:9.*does not answer`)) });
      expect(error?.message).not.toContain('hidden');
      expect(error?.message).not.toContain('\n');
    },
    30_000,
  );
});

describe('a configured port', () => {
  afterEach(() => {
    delete process.env.TALLY_PORT_REGISTRY;
  });

  test('is used', async () => {
    process.env.TALLY_PORT_REGISTRY = '19473';
    const servers = await startServers({ dataDir, reporter: silent, only: ['registry'] });
    expect(servers.addresses.registryUrl).toBe('http://127.0.0.1:19473');
    await servers.stop();
  });

  test('that is taken is said, not replaced', async () => {
    const taken = await startServers({ dataDir, reporter: silent, only: ['registry'] });
    process.env.TALLY_PORT_REGISTRY = new URL(taken.addresses.registryUrl).port;
    const otherDir = newDataDir();
    await expect(startServers({ dataDir: otherDir, reporter: silent, only: ['registry'] })).rejects.toMatchObject({ kind: 'usage' });
    rmSync(otherDir, { recursive: true });
    await taken.stop();
  });
});

test('each step is one plain line in a pipe, with its time', async () => {
  const out = new PassThrough();
  const servers = await startServers({ dataDir, reporter: plainReporter(out), only: ['registry'] });
  await servers.stop();
  expect(out.read().toString()).toMatch(
    /^✓ programs {3}all here, skipped {2}\d+\.\d s\n✓ registry {3}started at http:\/\/127\.0\.0\.1:\d+ {2}\d+\.\d s\n$/,
  );
});

/** Starts servers in a process of its own, from the build that `npm test` made. */
function startElsewhere(dir: string, only: string[]): { child: ChildProcess; said: () => string } {
  const script = `
    const { startServers, plainReporter } = require(process.argv[1]);
    const alive = setInterval(() => {}, 1000);
    startServers({ dataDir: process.argv[2], reporter: plainReporter(process.stdout), only: process.argv[3].split(',') }).then((servers) => {
      process.on('SIGINT', () => servers.stop().then(() => clearInterval(alive)));
      console.log('up');
    });`;
  const built = join(__dirname, '..', '..', 'dist', 'src', 'servers');
  const child = spawn(process.execPath, ['-e', script, built, dir, only.join(',')], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  return { child, said: () => said };
}

function pidsOf(dir: string): Map<string, number> {
  const servers = join(dir, 'servers');
  const files = readdirSync(servers, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.pid') && !file.includes('data'));
  return new Map(files.map((file) => [file.replace(/^.*\/|\.pid$/g, ''), Number(readFileSync(join(servers, file), 'utf8').split(' ')[0])]));
}

function rememberedPorts(): Record<string, number> {
  return JSON.parse(readFileSync(join(dataDir, 'servers', 'ports.json'), 'utf8')) as Record<string, number>;
}

/** Every listening TCP port of the machine, and whether only loopback reaches it. */
function listeners(): Map<number, ('loopback' | 'beyond')[]> {
  const found = new Map<number, ('loopback' | 'beyond')[]>();
  for (const line of ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/net/${table}`, 'utf8').split('\n').slice(1))) {
    const [, local = '', , state] = line.trim().split(/\s+/);
    const [address = '', port = ''] = local.split(':');
    if (state !== '0A') continue;
    const isLoopback = address === '0100007F' || address === '00000000000000000000000001000000';
    found.set(Number.parseInt(port, 16), [...(found.get(Number.parseInt(port, 16)) ?? []), isLoopback ? 'loopback' : 'beyond']);
  }
  return found;
}

/** A zombie that nobody reaps is none of ours any more. */
function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

async function sql({ databaseUrl }: ServerAddresses, statement: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

async function declare({ amqpUrl }: ServerAddresses, queue: string, { passive = false } = {}): Promise<void> {
  const connection = await connect(amqpUrl);
  const channel = await connection.createChannel();
  await (passive ? channel.checkQueue(queue) : channel.assertQueue(queue, { durable: true }));
  await connection.close();
}

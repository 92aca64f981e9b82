import { randomBytes } from 'node:crypto';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { temporal } from '@temporalio/proto';
import { Client } from 'pg';
import { eventually } from './eventually';

const CALL_TIMEOUT_MS = 20_000;

/** The address of a new, empty database. The run's end drops it. */
export async function freshDatabase(): Promise<string> {
  const name = fresh('_');
  await inDatabase((client) => client.query(`create database ${name}`));
  const url = new URL(variable('DATABASE'));
  url.pathname = `/${name}`;
  return url.href;
}

export interface FreshVhost {
  vhost: string;
  /** names the vhost, so that a client needs no more than this */
  amqpUrl: string;
  /** the management API of the whole broker, with a login that may do everything */
  managementUrl: string;
}

/** A new, empty vhost of the broker. The run's end deletes it. */
export async function freshVhost(): Promise<FreshVhost> {
  const vhost = fresh('-');
  await management('PUT', `/api/vhosts/${vhost}`);
  const amqp = new URL(variable('AMQP'));
  const user = amqp.username === '' ? 'guest' : amqp.username;
  await management('PUT', `/api/permissions/${vhost}/${user}`, { configure: '.*', write: '.*', read: '.*' });
  amqp.pathname = `/${vhost}`;
  return { vhost, amqpUrl: amqp.href, managementUrl: variable('AMQP_MANAGEMENT') };
}

export interface TemporalNamespace {
  address: string;
  namespace: string;
}

/** A new namespace of Temporal, with Tally's search attributes registered and visible. */
export async function temporalNamespace(): Promise<TemporalNamespace> {
  const address = temporalAddress();
  const namespace = fresh('-');
  const connection = await Connection.connect({ address, connectTimeout: CALL_TIMEOUT_MS });
  try {
    await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs('1 day') });
    const { INDEXED_VALUE_TYPE_INT, INDEXED_VALUE_TYPE_KEYWORD } = temporal.api.enums.v1.IndexedValueType;
    const searchAttributes = {
      TallyVerdict: INDEXED_VALUE_TYPE_KEYWORD,
      TallySituation: INDEXED_VALUE_TYPE_KEYWORD,
      TallyStuck: INDEXED_VALUE_TYPE_KEYWORD,
      TallyOutstanding: INDEXED_VALUE_TYPE_INT,
    };
    // A namespace is known to all parts of the server a moment after it was registered.
    await eventually(
      async () => {
        const there = await connection.operatorService.listSearchAttributes({ namespace });
        if (there.customAttributes?.TallyOutstanding !== undefined) return true;
        await connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
        return false;
      },
      { timeoutMs: CALL_TIMEOUT_MS, everyMs: 50 },
    );
  } finally {
    await connection.close();
  }
  return { address, namespace };
}

function temporalAddress(): string {
  return variable('TEMPORAL');
}

/** A task queue that no other test polls. */
export function taskQueue(): string {
  return fresh('-');
}

export function registryUrl(): string {
  return variable('REGISTRY');
}

/** Path of the time-skipping Temporal's binary, for `TestWorkflowEnvironment.createTimeSkipping`. */
export function timeSkippingServer(): string {
  const path = process.env.TALLY_TEST_SERVER;
  if (path === undefined || path === '') throw new Error('TALLY_TEST_SERVER is not set: tests are run by jest, which sets it');
  return path;
}

/** For the end of the run alone: takes what the run made from servers that are somebody's. The run's own go whole. */
export async function removeMade(): Promise<void> {
  if (isSomebodys('DATABASE_URL')) await dropDatabases();
  if (isSomebodys('AMQP_URL')) await deleteVhosts();
}

function isSomebodys(address: 'DATABASE_URL' | 'AMQP_URL'): boolean {
  return (process.env[address] ?? '') !== '';
}

async function dropDatabases(): Promise<void> {
  await inDatabase(async (client) => {
    const { rows } = await client.query<{ datname: string }>('select datname from pg_database where starts_with(datname, $1)', [
      `tally_test_${runName()}_`,
    ]);
    for (const { datname } of rows) await client.query(`drop database ${datname} with (force)`);
  });
}

async function deleteVhosts(): Promise<void> {
  // Accounts made for a vhost carry its name after an @.
  const mark = `tally-test-${runName()}-`;
  for (const kind of ['vhosts', 'users']) {
    const all = (await (await management('GET', `/api/${kind}`)).json()) as { name: string }[];
    for (const { name } of all.filter((one) => one.name.startsWith(mark) || one.name.includes(`@${mark}`))) {
      await management('DELETE', `/api/${kind}/${encodeURIComponent(name)}`);
    }
  }
}

function fresh(separator: '_' | '-'): string {
  return ['tally', 'test', runName(), randomBytes(5).toString('hex')].join(separator);
}

function runName(): string {
  return variable('RUN');
}

function variable(name: string): string {
  const value = process.env[`TALLY_TEST_${name}`];
  if (value === undefined || value === '') throw new Error(`TALLY_TEST_${name} is not set: the servers were not started`);
  return value;
}

async function inDatabase<T>(use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({
    connectionString: variable('DATABASE'),
    connectionTimeoutMillis: CALL_TIMEOUT_MS,
    query_timeout: CALL_TIMEOUT_MS,
  });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function management(method: string, path: string, body?: unknown): Promise<Response> {
  const url = new URL(path, variable('AMQP_MANAGEMENT'));
  const login = Buffer.from(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`).toString('base64');
  url.username = '';
  url.password = '';
  const response = await fetch(url, {
    method,
    headers: { authorization: `Basic ${login}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
  return response;
}

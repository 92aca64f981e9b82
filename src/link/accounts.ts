/** Broker accounts, made through the management API: each may do only what its bearer is there for. */
import { randomBytes } from 'node:crypto';
import { EnvironmentError, UsageError } from '../domain/errors';
import { reasonOf } from './errors';
import { EXCHANGES, nodeExchange, nodeQueue } from './topology';

const TIMEOUT_MS = 10_000;
const MANAGEMENT_PORT = '15672';

export interface Management {
  /** Without user and password. */
  readonly url: string;
  readonly authorization: string;
  readonly vhost: string;
}

export interface Account {
  readonly user: string;
  readonly password: string;
}

/**
 * The management API that is told, else the one that a broker has on its own host unless told otherwise.
 * @throws EnvironmentError when it does not answer.
 */
export async function findManagement(amqpUrl: string, managementUrl?: string): Promise<Management> {
  const url = new URL(managementUrl ?? guessed(amqpUrl));
  const amqp = new URL(amqpUrl);
  const user = decodeURIComponent(url.username || amqp.username) || 'guest';
  const password = decodeURIComponent(url.username ? url.password : amqp.password) || 'guest';
  const management: Management = {
    url: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
    vhost: vhostOf(amqpUrl),
  };
  await call(management, 'GET', '/api/whoami');
  return management;
}

/** The account of a node on the broker of this address. */
export function nodeAccount(amqpUrl: string, node: string): string {
  return nameIn(vhostOf(amqpUrl), `node-${node}`);
}

/** The vhost that an AMQP URL names, decoded. */
function vhostOf(amqpUrl: string): string {
  return decodeURIComponent(new URL(amqpUrl).pathname.slice(1)) || '/';
}

function guessed(amqpUrl: string): string {
  const url = new URL(amqpUrl.replace(/^amqp/, 'http'));
  url.port = MANAGEMENT_PORT;
  url.pathname = '/';
  url.search = '';
  return url.href;
}

/** A new password each time, unless the old one is known: nobody can read it back. Writes to and reads from its own alone. */
export async function ensureNodeAccount(management: Management, node: string, password = newPassword()): Promise<Account> {
  return await ensureAccount(management, nameIn(management.vhost, `node-${node}`), password, {
    configure: '^$',
    write: exactly(nodeExchange(node)),
    read: exactly(nodeQueue(node)),
  });
}

/** It takes requests, answers, and names what it could not read; it reaches no node and no other builder's reply. */
export async function ensureBuilderAccount(management: Management, name: string, password = newPassword()): Promise<Account> {
  return await ensureAccount(management, nameIn(management.vhost, `builder-${name}`), password, {
    configure: '^$',
    write: `^(${literal(EXCHANGES.builders)}|${literal(EXCHANGES.dead)})$`,
    read: '^(inspect|build\\..+)$',
  });
}

/** It is gone afterwards, also when it was not there; its open connections are closed by the broker. */
export async function removeAccount(management: Management, user: string): Promise<void> {
  await call(management, 'DELETE', `/api/users/${encodeURIComponent(user)}`, undefined, [404]);
}

/** The names of all accounts that the broker knows. */
export async function accountsOf({ url, authorization }: Management): Promise<ReadonlySet<string>> {
  const response = await fetch(`${url}/api/users?columns=name`, { headers: { authorization }, signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
    (error: unknown) => {
      throw new EnvironmentError(`the broker's management API at ${url} does not list its users: ${reasonOf(error)}`, { cause: error });
    },
  );
  const users: unknown = await response.json().catch(() => null);
  if (!response.ok || !Array.isArray(users))
    throw new EnvironmentError(`the broker's management API at ${url} answered GET /api/users with ${response.status}`);
  return new Set(users.flatMap((user: { name?: unknown }) => (typeof user.name === 'string' ? [user.name] : [])));
}

interface Permissions {
  readonly configure: string;
  readonly write: string;
  readonly read: string;
}

async function ensureAccount(management: Management, user: string, password: string, permissions: Permissions): Promise<Account> {
  await call(management, 'PUT', `/api/users/${encodeURIComponent(user)}`, { password, tags: '' });
  await call(management, 'PUT', `/api/permissions/${encodeURIComponent(management.vhost)}/${encodeURIComponent(user)}`, permissions);
  return { user, password };
}

/** Accounts are the broker's, permissions the vhost's: two meshes on one broker do not share accounts. */
function nameIn(vhost: string, user: string): string {
  return vhost === '/' ? user : `${user}@${vhost}`;
}

function newPassword(): string {
  return randomBytes(32).toString('base64url');
}

function exactly(name: string): string {
  return `^${literal(name)}$`;
}

function literal(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

async function call(management: Management, method: string, path: string, body?: object, alsoFine: readonly number[] = []): Promise<void> {
  let response: Response;
  try {
    response = await fetch(`${management.url}${path}`, {
      method,
      headers: { authorization: management.authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    // Read to the end, so that the connection is free again.
    await response.arrayBuffer();
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new EnvironmentError(
      `the broker's management API at ${management.url} does not answer (${reasonOf(cause)}): start it, or set AMQP_MANAGEMENT_URL`,
      { cause: error },
    );
  }
  if (response.ok || alsoFine.includes(response.status)) return;
  if (response.status === 401)
    throw new UsageError(`the broker's management API at ${management.url} refuses this user: set AMQP_MANAGEMENT_URL with one tagged administrator`);
  throw new EnvironmentError(`the broker's management API at ${management.url} answered ${method} ${path} with ${response.status}`);
}

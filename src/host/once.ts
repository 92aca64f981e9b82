/** One pass without a link: what is journalled, or a file that an operator gives, is applied, and what was found is said. */
import { readFileSync } from 'node:fs';
import { UsageError } from '../domain/errors';
import type { Times } from '../domain/times';
import type { Acceptance } from './accept';
import { type Host, openHost } from './context';
import { codeOf } from './root';

export interface OnceOptions {
  readonly root: string;
  readonly state: string;
  readonly times: Pick<Times, 'serviceSettle'>;
  /** Where artifacts come from and who may declare; null: only what is on this machine already, and an operator. */
  readonly credentials: string | null;
  readonly declaration: string | null;
  /** The operator's own, for this machine, without a signature. */
  readonly isUnsigned: boolean;
}

/** @returns 0 when everything holds, 1 when something failed. */
export async function runOnce({ root, state, times, credentials, declaration, isUnsigned }: OnceOptions): Promise<number> {
  const host = await openHost({ root, state, settleMs: times.serviceSettle, registry: credentials === null ? null : () => registryOf(credentials) });
  try {
    if (declaration !== null) {
      if (isUnsigned) takeUnsigned(host, declaration);
      else takeSigned(host, declaration, credentials);
    }
    const wanted = host.declaration();
    if (wanted === null) throw new UsageError(`no declaration has been accepted in ${state}: give one with --declaration FILE`);
    const pass = await host.engine.apply(wanted, new AbortController().signal);
    const failures = pass.modules.flatMap(({ module, failures: failed }) =>
      failed.map(({ resource, message }) => `${module}: ${resource} failed: ${message}\n`),
    );
    const changes = pass.modules.flatMap(({ module, changes: made }) =>
      made.map(({ resource, cause }) => `${module}: ${resource} changed, ${cause}\n`),
    );
    const known = new Set(pass.modules.map(({ module }) => module));
    const left = pass.left.flatMap(({ module, resource, message }) => (known.has(module) ? [] : [`${module}: ${resource} ${message}\n`]));
    process.stdout.write([...pass.removed.map((id) => `${id} removed\n`), ...changes, ...failures, ...left].join(''));
    return pass.hasFailed ? 1 : 0;
  } finally {
    host.release();
  }
}

/** The one that is held already is not read again in full: that costs more than looking at a thousand files. */
function takeUnsigned(host: Host, file: string): void {
  const text = readOrSay(file);
  const last = host.declaration();
  const content = parseOrSay(file, text);
  if (last !== null && JSON.stringify(content) === JSON.stringify(last)) return;
  const { acceptDeclaration } = require('./accept') as typeof import('./accept');
  const { mesh, node } = { mesh: '', node: '', ...(content as object) };
  settle(host, file, acceptDeclaration(content, { mesh, node, meshPublicKey: '', root: host.root, last }));
}

/** As it comes over the link. */
function takeSigned(host: Host, file: string, credentials: string | null): void {
  if (credentials === null)
    throw new UsageError(`a signed declaration is checked with --credentials FILE: name it, or say --unsigned for a declaration of your own`);
  const { readCredentials } = require('./credentials') as typeof import('./credentials');
  const { acceptEnvelope } = require('./accept') as typeof import('./accept');
  const { mesh, node, meshPublicKey } = readCredentials(credentials);
  const body = Buffer.from(readOrSay(file));
  settle(host, file, acceptEnvelope(body, { mesh, node, meshPublicKey, root: host.root, last: host.declaration() }));
}

function settle(host: Host, file: string, found: Acceptance): void {
  if (found.kind === 'refused') throw new UsageError(`${file} is refused: ${found.reason}`);
  if (found.kind === 'accepted') host.accept(found.declaration);
}

function readOrSay(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`cannot read the declaration ${file}: ${codeOf(error)}`);
  }
}

function parseOrSay(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`the declaration ${file} is not JSON`);
  }
}

function registryOf(credentials: string) {
  const { readCredentials } = require('./credentials') as typeof import('./credentials');
  const { createRegistryClient } = require('../registry') as typeof import('../registry');
  return createRegistryClient({ url: readCredentials(credentials).registryUrl });
}

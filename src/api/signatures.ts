/** How each forge proves that an event is its own. All comparisons take the same time whatever differs. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface Forge {
  /** As in the address. */
  readonly name: 'github' | 'gitea' | 'gitlab';
  /** The event's name in the forge's own words; null when it is missing. */
  event(headers: IncomingHttpHeaders): string | null;
  /** What proves it; null when it is missing or not in its form. */
  proof(headers: IncomingHttpHeaders): string | null;
  isProven(proof: string, secret: string, body: Buffer): boolean;
  readonly pings: ReadonlySet<string>;
  /** Events after which a ref may have moved. */
  readonly moves: ReadonlySet<string>;
}

export const forges: readonly Forge[] = [
  {
    name: 'github',
    event: (headers) => one(headers, 'x-github-event'),
    proof: (headers) => /^sha256=([0-9a-f]{64})$/i.exec(one(headers, 'x-hub-signature-256') ?? '')?.[1] ?? null,
    isProven: isHmac,
    pings: new Set(['ping']),
    moves: new Set(['push', 'create', 'delete']),
  },
  {
    name: 'gitea',
    event: (headers) => one(headers, 'x-gitea-event') ?? one(headers, 'x-forgejo-event'),
    proof: (headers) => /^([0-9a-f]{64})$/i.exec(one(headers, 'x-gitea-signature') ?? one(headers, 'x-forgejo-signature') ?? '')?.[1] ?? null,
    isProven: isHmac,
    pings: new Set(['ping']),
    moves: new Set(['push', 'create', 'delete']),
  },
  {
    name: 'gitlab',
    event: (headers) => one(headers, 'x-gitlab-event'),
    proof: (headers) => one(headers, 'x-gitlab-token'),
    isProven: (proof, secret) => isSame(createHash('sha256').update(proof).digest(), createHash('sha256').update(secret).digest()),
    pings: new Set(['ping']),
    moves: new Set(['Push Hook', 'Tag Push Hook']),
  },
];

function one(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' && value !== '' && value.length <= 500 ? value : null;
}

function isHmac(proof: string, secret: string, body: Buffer): boolean {
  return isSame(Buffer.from(proof, 'hex'), createHmac('sha256', secret).update(body).digest());
}

function isSame(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

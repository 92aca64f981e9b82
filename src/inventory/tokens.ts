import { createHash, randomBytes } from 'node:crypto';
import type { Db } from './db';

/** The token's text: shown once, only its hash is kept. A name that has one gets a new one. */
export async function addToken(db: Db, name: string): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  await db.query('insert into token (name, hash) values ($1, $2) on conflict (name) do update set hash = excluded.hash, created_at = now()', [
    name,
    hashOf(token),
  ]);
  return token;
}

/** Whose token this is; null when it is nobody's. */
export async function whoIs(db: Db, token: string): Promise<string | null> {
  const [row] = await db.query<{ name: string }>('select name from token where hash = $1', [hashOf(token)]);
  return row?.name ?? null;
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

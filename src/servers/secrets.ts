import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A secret made once for a data directory and kept in a file that only its owner reads. */
export function keptSecret(home: string, name: string): string {
  const file = join(home, name);
  mkdirSync(home, { recursive: true });
  try {
    const kept = readFileSync(file, 'utf8').trim();
    if (kept !== '') return kept;
  } catch {
    // Made below.
  }
  const secret = randomBytes(18).toString('hex');
  writeFileSync(file, `${secret}\n`, { mode: 0o600 });
  return secret;
}

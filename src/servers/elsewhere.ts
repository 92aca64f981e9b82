import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { UsageError } from '../domain/errors';
import { withLock } from './lock';
import { run } from './run';

/** The user that a server which refuses to run as root runs as. */
export interface RunAs {
  uid: number;
  gid: number;
  user: string;
}

/** Root's place for what another user must reach; only root ever needs one. */
const ROOT_PLACE = '/var/lib/tally';
const LOCK_WAIT_MS = 60_000;

/** Null when we are not root: then servers run as we do, and reach what we reach. */
export function unprivileged(): RunAs | null {
  if (process.getuid?.() !== 0) return null;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const user of ['postgres', 'nobody']) {
    const [, , uid, gid] = users.find(([name]) => name === user) ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid), user };
  }
  return { uid: 65_534, gid: 65_534, user: 'nobody' };
}

/**
 * A folder of `serversDir` that belongs to `as`, or one elsewhere if `as` cannot enter it there. Which it is stays so for
 * the life of the data.
 */
export async function homeFor(serversDir: string, name: string, as: RunAs | null): Promise<{ home: string; isElsewhere: boolean }> {
  const here = join(serversDir, name);
  const isHere = as === null || (!existsSync(tokenFile(serversDir)) && (await canEnter(serversDir, as)));
  if (!isHere && existsSync(here)) {
    throw new UsageError(
      `user ${as.user} cannot enter ${here} any more, where its data is: let others pass through the folders above it (chmod o+x)`,
    );
  }
  const home = isHere ? here : join(await withLock(ROOT_PLACE, LOCK_WAIT_MS, async () => claimElsewhere(serversDir)), name);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (as !== null) chownSync(home, as.uid, as.gid);
  return { home, isElsewhere: !isHere };
}

/** The folder elsewhere that belongs to this data directory now, or null. */
export function elsewhereOf(serversDir: string): string | null {
  const place = placeOf(serversDir);
  return isOurs(place, serversDir) ? place : null;
}

/**
 * Takes away the places whose data directory was deleted, `end` stopping first what runs there. A data directory of
 * which even the folder above is not there may be on a disk that is not mounted now: its place stays.
 */
export async function sweepElsewhere(end: (place: string) => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0 || !existsSync(ROOT_PLACE)) return;
  await withLock(ROOT_PLACE, LOCK_WAIT_MS, async () => {
    for (const place of readdirSync(ROOT_PLACE).map((entry) => join(ROOT_PLACE, entry))) {
      const [owner = ''] = ownerOf(place);
      if (owner === '' || isOurs(place, owner) || !existsSync(dirname(dirname(owner)))) continue;
      await end(place);
      rmSync(place, { recursive: true, force: true });
    }
  });
}

function claimElsewhere(serversDir: string): string {
  const place = placeOf(serversDir);
  if (isOurs(place, serversDir)) return place;
  const token = randomUUID();
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  chmodSync(ROOT_PLACE, 0o755);
  chmodSync(place, 0o755);
  writeFileSync(join(place, 'owner'), `${serversDir}\n${token}\n`);
  writeFileSync(tokenFile(serversDir), `${token}\n`);
  return place;
}

function placeOf(serversDir: string): string {
  return join(ROOT_PLACE, createHash('sha256').update(serversDir).digest('hex').slice(0, 12));
}

function tokenFile(serversDir: string): string {
  return join(serversDir, 'elsewhere');
}

function ownerOf(place: string): string[] {
  const file = join(place, 'owner');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
}

function isOurs(place: string, serversDir: string): boolean {
  const [owner, token] = ownerOf(place);
  if (owner !== serversDir || !existsSync(tokenFile(serversDir))) return false;
  return readFileSync(tokenFile(serversDir), 'utf8').trim() === token;
}

async function canEnter(folder: string, as: RunAs): Promise<boolean> {
  const { ok } = await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { timeoutMs: 5_000, uid: as.uid, gid: as.gid });
  return ok;
}

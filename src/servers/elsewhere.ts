import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run';

/** The user that a server which refuses to run as root runs as. */
export interface RunAs {
  uid: number;
  gid: number;
  user: string;
}

/** Root's place for what another user must reach; only root ever needs one. */
const ROOT_PLACE = '/var/lib/tally';

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

/** A folder of `serversDir` that belongs to `as`, or one elsewhere if `as` cannot enter it there. */
export async function homeFor(serversDir: string, name: string, as: RunAs | null): Promise<{ home: string; isElsewhere: boolean }> {
  const here = join(serversDir, name);
  if (as === null || (!existsSync(tokenFile(serversDir)) && (await canEnter(serversDir, as)))) {
    own(here, as);
    return { home: here, isElsewhere: false };
  }
  const home = join(claimElsewhere(serversDir), name);
  own(home, as);
  return { home, isElsewhere: true };
}

/** The folder elsewhere that belongs to this data directory now, or null. */
export function elsewhereOf(serversDir: string): string | null {
  const place = placeOf(serversDir);
  return isOurs(place, serversDir) ? place : null;
}

/** A data directory that was deleted left its part elsewhere behind: found by the owner it names. */
export function abandonedElsewhere(): string[] {
  if (process.getuid?.() !== 0 || !existsSync(ROOT_PLACE)) return [];
  return readdirSync(ROOT_PLACE)
    .map((entry) => join(ROOT_PLACE, entry))
    .filter((place) => {
      const [owner] = ownerOf(place);
      return owner !== undefined && owner !== '' && !isOurs(place, owner);
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

function own(folder: string, as: RunAs | null): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (as !== null) chownSync(folder, as.uid, as.gid);
}

async function canEnter(folder: string, as: RunAs): Promise<boolean> {
  const { ok } = await run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { timeoutMs: 5_000, uid: as.uid, gid: as.gid });
  return ok;
}

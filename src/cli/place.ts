/** Where the control plane is, and the token for it. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { UsageError } from '../domain/errors';

export interface Place {
  /** Without a slash at the end. */
  readonly url: string;
  /** null: only what needs none can be asked. */
  readonly token: string | null;
  /** The file it stands in; null when the environment says it. */
  readonly file: string | null;
}

/** TALLY_URL and TALLY_TOKEN; else client.json of TALLY_HOME, of the nearest .tally/home from here upwards, of ~/.config/tally. */
export function findPlace(env: NodeJS.ProcessEnv, from: string): Place {
  const file = clientFile(env, from);
  const client = file === null ? null : readClient(file);
  const { TALLY_URL: url, TALLY_TOKEN: token } = env;
  if (url !== undefined && url !== '') {
    const address = checked(url, 'TALLY_URL');
    // A token is for the server that it stands with in the file, and for no other.
    const kept = client !== null && client.url === address ? client.token : null;
    return { url: address, token: token || kept, file: null };
  }
  if (client === null) {
    throw new UsageError('no control plane is known here: start one with "tally up", or set TALLY_URL and TALLY_TOKEN');
  }
  return { ...client, token: token || client.token, file };
}

function clientFile(env: NodeJS.ProcessEnv, from: string): string | null {
  if (env.TALLY_HOME) {
    const file = join(env.TALLY_HOME, 'client.json');
    return existsSync(file) ? file : null;
  }
  let folder = resolve(from);
  for (;;) {
    const file = join(folder, '.tally', 'home', 'client.json');
    if (existsSync(file)) return file;
    const above = dirname(folder);
    if (above === folder) break;
    folder = above;
  }
  const own = join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'tally', 'client.json');
  return existsSync(own) ? own : null;
}

function readClient(file: string): { url: string; token: string } {
  if ((statSync(file).mode & 0o077) !== 0) throw new UsageError(`${file} holds a token and can be read by others: chmod 600 ${file}`);
  let read: unknown;
  try {
    read = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw new UsageError(`${file} is not JSON: "tally up" writes it anew once it is removed`);
  }
  if (
    typeof read !== 'object' ||
    read === null ||
    !('url' in read) ||
    !('token' in read) ||
    typeof read.url !== 'string' ||
    typeof read.token !== 'string'
  ) {
    throw new UsageError(`${file} does not hold { "url", "token" }: "tally up" writes it anew once it is removed`);
  }
  return { url: checked(read.url, file), token: read.token };
}

function checked(url: string, where: string): string {
  if (!/^https?:\/\/[^\s/]+/.test(url) || !URL.canParse(url))
    throw new UsageError(`${where} holds no address of a control plane, as in http://127.0.0.1:8080`);
  return url.replace(/\/+$/, '');
}

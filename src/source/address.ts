/** Where a repository is: what may be named, and how its credentials travel without being seen. */
import { UsageError } from '../domain/errors';

export interface Address {
  /** What git is given: without credentials. */
  readonly url: string;
  /** host[:port], or "local". */
  readonly host: string;
  /** Environment for git that carries the credentials; arguments are seen by everybody on the machine. */
  readonly env: Readonly<Record<string, string>>;
  readonly isLocal: boolean;
}

const SCP_LIKE = /^(?:[A-Za-z0-9_.-]+@)?([A-Za-z0-9.-]+):(?!\/\/).+$/;

/** @throws UsageError for what is no repository address, options and helpers that run programs among them. */
export function parseAddress(repository: string): Address {
  const say = (what: string): UsageError =>
    new UsageError(
      `repository ${JSON.stringify(hideCredentials(repository))}: ${what}; name an absolute path, or a file, https, http, ssh or git address`,
    );
  if (repository === '' || repository.startsWith('-') || /[\0\n\r]/.test(repository)) throw say('is no address');
  if (repository.startsWith('/')) return { url: repository, host: 'local', env: {}, isLocal: true };
  if (/^[A-Za-z0-9+.-]+::/.test(repository)) throw say('names a remote helper, which runs a program');
  if (!repository.includes('://')) {
    const host = SCP_LIKE.exec(repository)?.[1];
    if (host === undefined || host.startsWith('-')) throw say('is no address');
    return { url: repository, host, env: {}, isLocal: false };
  }
  let url: URL;
  try {
    url = new URL(repository);
  } catch {
    throw say('is no address');
  }
  if (!['file:', 'https:', 'http:', 'ssh:', 'git:'].includes(url.protocol)) throw say(`has the protocol ${url.protocol}//`);
  if (url.hostname.startsWith('-')) throw say('has an option for a host');
  if (url.protocol === 'file:') return { url: repository, host: 'local', env: {}, isLocal: true };
  const host = url.host;
  const [user, password] = [decoded(url.username), decoded(url.password)];
  url.password = '';
  if (!url.protocol.startsWith('http')) return { url: url.href, host, env: {}, isLocal: false };
  url.username = '';
  if (user === '' && password === '') return { url: repository, host, env: {}, isLocal: false };
  return { url: url.href, host, env: loginFor(url.origin, user, password), isLocal: false };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * A helper of git's that answers from its environment, for this one origin: git asks it only when the server asks for a
 * login, so nothing goes with a redirect to another host.
 */
function loginFor(origin: string, user: string, password: string): Record<string, string> {
  const helper = `!f() { test "$1" != get || printf 'username=%s\\npassword=%s\\n' "$TALLY_GIT_USER" "$TALLY_GIT_PASSWORD"; }; f`;
  return { ...config({ [`credential.${origin}.helper`]: helper }), TALLY_GIT_USER: user, TALLY_GIT_PASSWORD: password };
}

/** host[:port] of a repository, for reading each host's repositories a few at a time; "local" for files. */
export function gitHostOf(repository: string): string {
  try {
    return parseAddress(repository).host;
  } catch {
    return 'local';
  }
}

/** Git configuration as environment variables, numbered from 0. */
function config(entries: Readonly<Record<string, string>>): Record<string, string> {
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(Object.keys(entries).length) };
  Object.entries(entries).forEach(([key, value], n) => {
    env[`GIT_CONFIG_KEY_${n}`] = key;
    env[`GIT_CONFIG_VALUE_${n}`] = value;
  });
  return env;
}

/** Text without what stands between :// and @. */
export function hideCredentials(text: string): string {
  return text.replace(/:\/\/[^/@\s]*@/g, '://…@');
}

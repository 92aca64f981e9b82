import { UsageError } from '../domain/errors';
import { type Address, parseAddress } from './address';
import { runGit } from './git';

/** What git says of a ref now. It is never inferred: absent and unreadable are told apart. */
export type RefReading =
  | { readonly kind: 'head'; readonly commit: string }
  /** The repository answered, and the ref is not there. */
  | { readonly kind: 'absent'; readonly reason: string }
  /** Nothing is known: the repository did not answer, or not as git. */
  | { readonly kind: 'unreadable'; readonly reason: string };

/**
 * A repository on this machine may belong to another user. The git that serves it is another process, which heeds no
 * setting of the one that asks; it runs nothing of the repository.
 */
const SERVE_LOCAL = "git -c 'safe.directory=*' upload-pack";

/**
 * Reads one ref by `git ls-remote`. Never throws.
 * @param ref a branch or tag by its short or its full name (`main`, `refs/tags/v1`), or HEAD; a tag is peeled to its commit.
 */
export async function readRef(
  repository: string,
  ref: string,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<RefReading> {
  let address: Address;
  try {
    address = parseAddress(repository);
  } catch (error) {
    if (error instanceof UsageError) return { kind: 'unreadable', reason: error.message };
    throw error;
  }
  if (!isRefName(ref)) return { kind: 'unreadable', reason: `${JSON.stringify(ref)} is no name of a ref` };
  const git = { timeoutMs: options.timeoutMs, env: address.env, signal: options.signal };
  const names = fullNames(ref);
  const list = ['ls-remote', '--quiet', ...(address.isLocal ? [`--upload-pack=${SERVE_LOCAL}`] : []), '--', address.url];
  const found = await runGit([...list, ...names.flatMap((name) => [name, `${name}^{}`])], git);
  if (!found.ok) return { kind: 'unreadable', reason: explain(found.reason) };
  const refs = parse(found.stdout);
  for (const name of names) {
    const commit = refs.get(`${name}^{}`) ?? refs.get(name);
    if (commit !== undefined) return { kind: 'head', commit };
  }
  // Bounded: that there is more than fits says as well that it is not empty.
  const any = await runGit(list, { ...git, maxBytes: 1024 * 1024 });
  if (!any.ok && any.stdout === '' && !any.reason.startsWith('answered more')) return { kind: 'unreadable', reason: explain(any.reason) };
  if (/^https?:/.test(address.url) && any.stdout.trim() === '' && !(await answersAsGit(address, options.timeoutMs))) {
    return { kind: 'unreadable', reason: 'what answers there is not git' };
  }
  const isEmpty = any.ok && any.stdout.trim() === '';
  return { kind: 'absent', reason: isEmpty ? 'the repository is empty' : `there is no ${ref} in the repository` };
}

/** Over HTTP git takes any page without refs in it, HTML as well, for an empty repository; its content type tells. */
async function answersAsGit(address: Address, timeoutMs: number): Promise<boolean> {
  const { TALLY_GIT_USER: user, TALLY_GIT_PASSWORD: password } = address.env;
  const login = user === undefined ? {} : { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` };
  const headers = { 'user-agent': 'git/tally', ...login };
  try {
    const response = await fetch(`${address.url.replace(/\/$/, '')}/info/refs?service=git-upload-pack`, {
      headers,
      signal: AbortSignal.timeout(timeoutMs),
    });
    const type = response.headers.get('content-type') ?? '';
    await response.body?.cancel();
    return response.ok && (type.startsWith('application/x-git-upload-pack-advertisement') || type.startsWith('text/plain'));
  } catch {
    return false;
  }
}

/** Whether git could have such a ref; one that begins with a dash would be taken for an option. */
export function isRefName(ref: string): boolean {
  return ref !== '' && !ref.startsWith('-') && !/[\s\p{Cc}~^:?*[\\]|\.\.|@\{/u.test(ref);
}

/** A short name is a branch before it is a tag. */
function fullNames(ref: string): string[] {
  if (ref === 'HEAD' || ref.startsWith('refs/')) return [ref];
  return [`refs/heads/${ref}`, `refs/tags/${ref}`];
}

/** `ls-remote` matches patterns from the end, so only exact names count. */
function parse(text: string): Map<string, string> {
  const refs = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [commit, name] = line.split('\t');
    if (commit !== undefined && name !== undefined && /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(commit)) refs.set(name, commit);
  }
  return refs;
}

function explain(reason: string): string {
  if (/not valid: is this a git repository|invalid .* response|protocol error|bad line length/.test(reason))
    return `what answers there is not git (${reason})`;
  if (/could not read Username|Authentication failed|terminal prompts disabled/.test(reason)) return `the repository asks for a login (${reason})`;
  return reason;
}

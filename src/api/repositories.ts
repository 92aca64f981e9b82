/** Which modules an event may be about: the repository that it names, under any of its addresses. Nothing else of it is read. */
import { z } from 'zod';

const address = z.string().max(1_000).optional().catch(undefined);

/** The addresses of a repository as the three forges write them. */
const named = z
  .object({
    clone_url: address,
    ssh_url: address,
    html_url: address,
    git_url: address,
    url: address,
    git_http_url: address,
    git_ssh_url: address,
    web_url: address,
    http_url: address,
    homepage: address,
  })
  .transform((found) => Object.values(found).filter((one) => one !== undefined && one !== ''));

const event = z.object({ repository: named.optional().catch(undefined), project: named.optional().catch(undefined) });

/** Every address that the event gives its repository, in one form; empty: it names none. */
export function repositoriesOf(payload: unknown): Set<string> {
  const parsed = event.safeParse(payload);
  if (!parsed.success) return new Set();
  const { repository = [], project = [] } = parsed.data;
  return new Set([...repository, ...project].map((one) => canonicalRepository(one ?? '')).filter((one) => one !== ''));
}

/** One form for all addresses of the same repository: `host/path`, without scheme, user, port, `.git` and the slash at the end. */
export function canonicalRepository(text: string): string {
  const scp = /^(?:[^@/\s]+@)?([^:/\s]+):(?!\/\/)(.+)$/.exec(text);
  if (scp !== null && !text.includes('://')) return `${(scp[1] ?? '').toLowerCase()}/${trimmed(scp[2] ?? '')}`;
  if (!text.includes('://')) return trimmed(text);
  try {
    const url = new URL(text);
    const path = trimmed(decodeURIComponent(url.pathname));
    return url.hostname === '' ? path : `${url.hostname.toLowerCase()}/${path}`;
  } catch {
    return '';
  }
}

function trimmed(path: string): string {
  return path
    .replace(/^\/+/, '')
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .replace(/\/+$/, '')
    .toLowerCase();
}

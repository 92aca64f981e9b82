/** Paths inside an archive, judged by their text alone: nothing on a disk is asked. */

/** The parts of a relative path; null when it is absolute, leaves its root, or is no path. */
export function partsOf(name: string): string[] | null {
  if (name === '' || name.startsWith('/') || name.includes('\0')) return null;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return parts.includes('..') ? null : parts;
}

/** More hops than any system follows. */
const MOST_HOPS = 40;

/**
 * Where a link leads, followed the way a kernel does: part by part, through other links of the same tree.
 * @returns 'inside', 'outside', or 'nowhere' for a loop, which leads nobody out.
 */
export function followLink(at: readonly string[], target: string, links: ReadonlyMap<string, string>): 'inside' | 'outside' | 'nowhere' {
  if (target.startsWith('/')) return 'outside';
  const here = at.slice(0, -1);
  let todo = target.split('/');
  let hops = 0;
  while (todo.length > 0) {
    const [part = '', ...rest] = todo;
    todo = rest;
    if (part === '' || part === '.') continue;
    if (part === '..') {
      if (here.pop() === undefined) return 'outside';
      continue;
    }
    here.push(part);
    const next = links.get(here.join('/'));
    if (next === undefined) continue;
    hops += 1;
    if (hops > MOST_HOPS) return 'nowhere';
    if (next.startsWith('/')) return 'outside';
    here.pop();
    todo = [...next.split('/'), ...todo];
  }
  return 'inside';
}

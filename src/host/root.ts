/**
 * Where targets lie on this machine: always under the root, by their name and by every link on the way. A target itself is
 * never followed; a link on the way may lead elsewhere under the root or into a tree that this host unpacked.
 */
import { lstatSync, realpathSync, type Stats } from 'node:fs';
import { dirname, join, posix, sep } from 'node:path';
import { ResourceFailed } from './failures';

export interface Place {
  /** Real directory of the target, which may not be there yet. */
  readonly parent: string;
  readonly path: string;
}

export interface Root {
  readonly path: string;
  /** @throws ResourceFailed where a link leads out. */
  locate(target: string): Place;
  /** `${root}` and `$${`, in one pass. */
  fill(text: string): string;
  /** Links may have changed: what was resolved is resolved anew. */
  forget(): void;
}

/** One spelling for one target; null when it is none under a root. */
export function normalTarget(target: string): string | null {
  if (!target.startsWith('/') || target.includes('\0') || target.split('/').includes('..')) return null;
  const normal = posix.normalize(target).replace(/\/+$/, '');
  return normal === '' ? null : normal;
}

const SPLIT_MOST = 50_000;

export function openRoot(path: string, trees: string): Root {
  const real = realpathSync(path);
  const prefix = real === '/' ? '' : real;
  const resolved = new Map<string, string>();
  const split = new Map<string, { readonly directory: string; readonly base: string }>();

  /** A thousand targets are split once, not at each look at them. */
  function splitTarget(target: string): { readonly directory: string; readonly base: string } {
    const known = split.get(target);
    if (known !== undefined) return known;
    const normal = normalTarget(target);
    if (normal === null) throw new ResourceFailed(`${target} is no path under ${real}`);
    const path = prefix + normal;
    const made = { directory: dirname(path), base: posix.basename(path) };
    if (split.size >= SPLIT_MOST) split.clear();
    split.set(target, made);
    return made;
  }

  function resolveDirectory(directory: string): string {
    const known = resolved.get(directory);
    if (known !== undefined) return known;
    const found = realOf(directory);
    // What is not there yet is made below a parent that is.
    if (found === null)
      return directory === real ? real : join(resolveDirectory(dirname(directory)), directory.slice(dirname(directory).length).replace(/^\/+/, ''));
    if (!isWithin(found, real) && !isWithin(found, trees)) throw new ResourceFailed(`${directory} leads out of ${real}, to ${found}`);
    resolved.set(directory, found);
    return found;
  }

  return {
    path: real,
    locate(target) {
      const { directory, base } = splitTarget(target);
      const parent = resolveDirectory(directory);
      return { parent, path: parent === '/' ? `/${base}` : `${parent}/${base}` };
    },
    fill: (text) => text.replace(/\$\$\{|\$\{root\}/g, (found) => (found === '$${' ? '${' : prefix)),
    forget: () => resolved.clear(),
  };
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

function realOf(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch (error) {
    // A link to nothing is there all the same: nothing can be made below it.
    if (codeOf(error) === 'ENOENT' && statOf(path) === null) return null;
    throw new ResourceFailed(`cannot follow ${path}: ${codeOf(error)}`);
  }
}

/** Of the thing itself, links not followed; null when there is none. */
export function statOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
}

/** Of what the system says; '' where there is none. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

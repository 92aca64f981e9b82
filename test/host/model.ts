/** What a root must look like under a declaration, worked out without a host; and declarations that meet and part on few targets. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ArtifactRef, DeclaredResource } from '../../src/schema/declaration';
import { archive, directory, file, type Machine } from './machine';

type Tree = Record<string, string>;

/** What others have there, on the very targets too. */
export function plantForeign(m: Machine): void {
  m.plant('a', 'theirs', 0o640);
  m.plant('d/theirs', 'theirs');
  m.plant('opt/app/theirs', 'theirs');
  mkdirSync(join(m.root, 'k'), { mode: 0o711 });
  mkdirSync(join(m.root, 'g'));
  symlinkSync('../a', join(m.root, 'g/h'));
}

export interface Choice {
  readonly target: string;
  readonly version: number;
  readonly module: string;
}

export const TARGETS = [
  'file /a',
  'file /d/b',
  'file /d/e/f',
  'file /g/h',
  'file /new/deep/x',
  'directory /d',
  'directory /d/e',
  'directory /k',
  'archive /opt/app',
  'archive /srv/app',
];

/** The same whatever order the choices come in: each target once, the first choice counts. */
export function resourcesOf(choices: readonly Choice[], packs: readonly ArtifactRef[]): DeclaredResource[] {
  const byTarget = new Map(choices.map((choice) => [choice.target, choice]));
  return [...byTarget.values()].map(({ target, version, module }) => {
    const [shape = '', path = ''] = target.split(' ');
    const pack = packs[version % packs.length];
    if (shape === 'archive' && pack !== undefined) return archive(path, pack, { module });
    if (shape === 'directory') return directory(path, { module, mode: version === 0 ? '0755' : '0700' });
    return file(path, contentOf(path, version), { module, mode: version === 0 ? '0644' : '0600' });
  });
}

export function contentOf(path: string, version: number): string {
  return `${path} in version ${version}\n`.repeat(1 + version * 500);
}

export function expectedTree(foreign: Tree, resources: readonly DeclaredResource[]): Tree {
  const tree = { ...foreign };
  const parents = (path: string): void => {
    for (let at = dirname(path); at !== '.'; at = dirname(at)) tree[at] ??= '755';
  };
  for (const { spec } of resources) {
    if (!('path' in spec)) continue;
    const path = spec.path.slice(1);
    parents(path);
    if ('content' in spec) tree[path] = `${Number(spec.mode)} ${spec.content}`;
    else if ('mode' in spec) tree[path] = String(Number(spec.mode));
    else {
      for (const below of Object.keys(tree)) if (below.startsWith(`${path}/`)) delete tree[below];
      tree[path] = '→ tree';
    }
  }
  return tree;
}

/** What this host moved aside stays beside its target; everything else is as anybody would see it. */
export function seenTree(m: Machine): Tree {
  const shown = Object.entries(m.tree()).filter(([path]) => !/(^|\/)\.tally-[0-9a-f]{12}\.before(\/|$)/.test(path));
  return Object.fromEntries(shown.map(([path, what]) => [path, what.startsWith(`→ ${m.state}/trees/`) ? '→ tree' : what]));
}

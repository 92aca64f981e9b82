import { posix } from 'node:path';
import { type Manifest, sourceOfArtifact } from '../schema/manifest';
import type { ExportedName, Language } from '../schema/messages';
import type { ArtifactKind } from '../schema/primitives';
import { upwards } from './paths';
import type { DeclaredName } from './types';

/** Which of the names that the code declares is exported: those that an artifact of the module carries to others. */

const CARRIES: Partial<Record<ArtifactKind, { language: Language; file: string }>> = {
  go: { language: 'go', file: 'go.mod' },
  npm: { language: 'npm', file: 'package.json' },
  wheel: { language: 'python', file: 'pyproject.toml' },
  crate: { language: 'rust', file: 'Cargo.toml' },
};

export interface Bound {
  exports: ExportedName[];
  notes: string[];
}

/** One name is carried by one artifact: of two the first by name. */
export function bindExports(manifest: Manifest, declared: ReadonlyMap<Language, readonly DeclaredName[]>): Bound {
  const bound: Bound = { exports: [], notes: [] };
  const carriers = new Map<string, string>();
  const artifacts = Object.entries(manifest.artifacts).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [artifact, written] of artifacts) {
    const { kind, path } = sourceOfArtifact(written);
    const carries = CARRIES[kind];
    if (carries === undefined) continue;
    const { language, file } = carries;
    const names = declared.get(language) ?? [];
    const directory = kind === 'wheel' ? nearest(names, inTree(posix.dirname(inTree(path)))) : inTree(path);
    const own = names.filter((one) => one.directory === directory);
    if (own.length === 0) bound.notes.push(`artifact ${artifact}: no ${file} names what is in ${path}, so no other module can import it`);
    for (const { name, file: at, line } of own) {
      const key = `${language} ${name}`;
      const earlier = carriers.get(key);
      if (earlier !== undefined && earlier !== artifact)
        bound.notes.push(`artifact ${artifact}: ${name} is carried by artifact ${earlier} already, which is the one that others get`);
      if (earlier !== undefined) continue;
      carriers.set(key, artifact);
      bound.exports.push({ language, name, artifact, file: at, line });
    }
  }
  return bound;
}

/** As the tree has it: no `./`, no `/` at the end; the root is `.`. */
function inTree(path: string): string {
  return posix.normalize(path).replace(/^(\.?\/)+|\/+$/g, '') || '.';
}

function nearest(declared: readonly DeclaredName[], directory: string): string {
  const having = new Set(declared.map((one) => one.directory));
  return upwards(directory).find((above) => having.has(above)) ?? '.';
}

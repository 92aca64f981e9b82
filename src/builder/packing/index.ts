/**
 * Artifacts as they lie in the registry: the same content gives the same bytes, whoever packed it, where and when. The last four
 * kinds are in the form that the language's own tool takes, reduced to what others compile.
 */
import { ArchiveRefused, inspectArchive, normaliseWheel, packDirectory } from '../../pack';
import type { ArtifactKind } from '../../schema/primitives';
import { packCrate } from './crate';
import { packGo } from './go';
import { packNpm } from './npm';
import type { BuiltTree } from './sources';

export type { BuiltTree } from './sources';

/** Writes `outFile`. A string says what is wrong with it, which no host and no other build could use: better said now. */
export async function packArtifact(kind: Exclude<ArtifactKind, 'file'>, path: string, tree: BuiltTree, outFile: string): Promise<string | null> {
  try {
    const wrong = await packed(kind, path, tree, outFile);
    if (wrong === null && kind !== 'wheel') await inspectArchive(outFile);
    return wrong;
  } catch (error) {
    if (error instanceof ArchiveRefused) return error.message;
    throw error;
  }
}

async function packed(kind: Exclude<ArtifactKind, 'file'>, path: string, tree: BuiltTree, outFile: string): Promise<string | null> {
  switch (kind) {
    case 'archive':
      await packDirectory(path, outFile);
      return null;
    case 'go':
      return packGo(path, tree, outFile);
    case 'npm':
      return packNpm(path, outFile);
    case 'crate':
      return packCrate(path, tree, outFile);
    case 'wheel':
      await normaliseWheel(path, outFile);
      return null;
  }
}

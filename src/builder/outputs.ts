import { realpath, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { ArchiveRefused, inspectArchive, packDirectory } from '../pack';
import type { RegistryClient } from '../registry';
import { pushArtifact } from '../registry';
import { type Manifest, sourceOfArtifact } from '../schema/manifest';
import type { ArtifactKind } from '../schema/primitives';
import type { Built } from './provenance';

/** What `artifacts` of the manifest names in the tree, once the commands have ended. */
export interface Output {
  name: string;
  kind: ArtifactKind;
  path: string;
}

/** A string is the module's own mistake, said in one line. */
export async function findOutputs(manifest: Manifest, tree: string): Promise<Output[] | string> {
  const root = await realpath(tree);
  const outputs: Output[] = [];
  for (const [name, artifact] of Object.entries(manifest.artifacts).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const { kind, path: declared } = sourceOfArtifact(artifact);
    const path = await realpath(join(tree, declared)).catch(() => null);
    if (path === null) return `artifact ${name}: ${declared} is not there after the build: look at build.run, or at artifacts in module.yaml`;
    const inside = relative(root, path);
    if (inside.startsWith('..')) return `artifact ${name}: ${declared} is a link out of the tree`;
    const found = await stat(path);
    if (kind === 'archive' && !found.isDirectory()) return `artifact ${name}: ${declared} is not a directory: write \`file: ${declared}\` for a file`;
    if (kind === 'file' && !found.isFile()) return `artifact ${name}: ${declared} is not a file: write \`archive: ${declared}\` for a directory`;
    outputs.push({ name, kind, path });
  }
  return outputs;
}

/** Archives are packed into `scratch`. A string: what is in one no host would unpack, which is better said now than on each node. */
export async function packOutputs(outputs: readonly Output[], scratch: string): Promise<Output[] | string> {
  const packed: Output[] = [];
  for (const output of outputs) {
    if (output.kind === 'file') {
      packed.push(output);
      continue;
    }
    const path = join(scratch, `${output.name}.tar.gz`);
    try {
      await packDirectory(output.path, path);
      await inspectArchive(path);
    } catch (error) {
      if (!(error instanceof ArchiveRefused)) throw error;
      return `artifact ${output.name}: ${error.message}`;
    }
    packed.push({ ...output, path });
  }
  return packed;
}

export async function pushOutputs(registry: RegistryClient, packed: readonly Output[], module: string, request: string): Promise<Built[]> {
  const built: Built[] = [];
  for (const { name, kind, path } of packed) {
    const repository = repositoryOf(module);
    // A tag of its own for each artifact of each build: what has none may be collected.
    built.push({ name, kind, repository, pushed: await pushArtifact(registry, { repository, kind, path, tag: `${request}-${name}` }) });
  }
  return built;
}

export function repositoryOf(module: string): string {
  return `tally/${module}`;
}

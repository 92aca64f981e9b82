import { readdir, realpath, stat } from 'node:fs/promises';
import { join, posix, relative } from 'node:path';
import type { RegistryClient } from '../registry';
import { pushArtifact } from '../registry';
import { type Manifest, sourceOfArtifact } from '../schema/manifest';
import type { ArtifactKind } from '../schema/primitives';
import { packArtifact } from './packing';
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
    const { kind, path: written } = sourceOfArtifact(artifact);
    const declared = kind === 'wheel' ? await theOnly(root, written) : written;
    if (typeof declared !== 'string') return `artifact ${name}: ${declared.wrong}`;
    const path = await realpath(join(tree, declared)).catch(() => null);
    if (path === null) return `artifact ${name}: ${declared} is not there after the build: look at build.run, or at artifacts in module.yaml`;
    const inside = relative(root, path);
    if (inside.startsWith('..')) return `artifact ${name}: ${declared} is a link out of the tree`;
    const found = await stat(path);
    const isFile = kind === 'file' || kind === 'wheel';
    if (!isFile && !found.isDirectory())
      return `artifact ${name}: ${declared} is not a directory${kind === 'archive' ? `: write \`file: ${declared}\` for a file` : ''}`;
    if (isFile && !found.isFile())
      return `artifact ${name}: ${declared} is not a file${kind === 'file' ? `: write \`archive: ${declared}\` for a directory` : ''}`;
    outputs.push({ name, kind, path });
  }
  return outputs;
}

/** A wheel has its version in its name, which the manifest need not know: `*` in the last part of the path stands for it. */
async function theOnly(root: string, declared: string): Promise<string | { wrong: string }> {
  const pattern = posix.basename(declared);
  if (!pattern.includes('*')) return declared;
  const directory = posix.dirname(declared);
  const matching = new RegExp(`^${pattern.split('*').map(escaped).join('.*')}$`);
  const found = (await readdir(join(root, directory)).catch(() => [])).filter((entry) => matching.test(entry)).sort();
  const [only] = found;
  if (found.length > 1) return { wrong: `${declared} is ${found.join(' and ')}: name one of them` };
  return only === undefined ? declared : posix.join(directory, only);
}

function escaped(text: string): string {
  return text.replace(/[.+?^${}()|[\]\\]/g, '\\$&');
}

/** Packed into `scratch`. A string: what is in one no host would unpack, or no build could use, which is better said now than there. */
export async function packOutputs(
  outputs: readonly Output[],
  tree: { readonly root: string; readonly tracked: readonly string[] },
  scratch: string,
): Promise<Output[] | string> {
  const built = { root: await realpath(tree.root), tracked: tree.tracked, outputs: outputs.map((output) => output.path) };
  const packed: Output[] = [];
  for (const output of outputs) {
    const { kind, name } = output;
    if (kind === 'file') {
      packed.push(output);
      continue;
    }
    const path = join(scratch, `${name}.${kind === 'wheel' ? 'whl' : 'tar.gz'}`);
    const wrong = await packArtifact(kind, output.path, built, path);
    if (wrong !== null) return `artifact ${name}: ${wrong}`;
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

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EnvironmentError } from '../../domain/errors';
import type { RegistryClient } from '../../registry';
import { artifactLayer } from '../../registry';
import type { Input } from '../../schema/messages';

export interface Fetched {
  readonly input: Input;
  /** Where its blob lies, whole and verified. */
  readonly file: string;
}

const SIDE_BY_SIDE = 8;

/**
 * The artifacts that the request names, by their digests, into `directory`.
 * @throws EnvironmentError where the registry does not hold one, or holds something else under its name.
 */
export async function fetchInputs(inputs: readonly Input[], registry: RegistryClient, directory: string, signal: AbortSignal): Promise<Fetched[]> {
  await mkdir(directory);
  const fetched: Fetched[] = [];
  for (let at = 0; at < inputs.length; at += SIDE_BY_SIDE) {
    signal.throwIfAborted();
    fetched.push(...(await Promise.all(inputs.slice(at, at + SIDE_BY_SIDE).map((input) => fetchOne(input, registry, directory)))));
  }
  return fetched;
}

/** What is recorded is what the registry says of the digest, which says it all. */
async function fetchOne(input: Input, registry: RegistryClient, directory: string): Promise<Fetched> {
  const { module, artifact, repository, digest } = input;
  const layer = await artifactLayer(registry, repository, digest);
  if (layer.kind !== input.kind || layer.digest !== input.blob)
    throw new EnvironmentError(
      `input ${module}/${artifact}: ${digest} of ${repository} is another artifact than was asked for: build ${module} again`,
    );
  const file = join(directory, `${module}-${artifact}`);
  await registry.fetchBlobToFile(repository, layer.digest, file, { maxBytes: layer.size });
  return { input: { ...input, size: layer.size }, file };
}

/** Blobs from the registry, by digest: fetched once, checked again before each use, and dropped oldest first. */
import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, readFileSync } from 'node:fs';
import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { RegistryClient } from '../registry';
import type { ArtifactRef } from '../schema/declaration';
import { ResourceFailed } from './failures';
import { statOf } from './root';

export interface Artifacts {
  /** Path of a file that holds exactly the artifact's blob. @throws EnvironmentError, ResourceFailed. */
  fetch(artifact: ArtifactRef): Promise<string>;
  /** Makes room: what was not used for longest goes until the rest fits. */
  prune(): Promise<void>;
}

const CACHE_BYTES = 1024 ** 3;
const SMALL_BYTES = 1 << 20;

/** @param registry null: there is no link, and what is not here cannot be had. */
export function openArtifacts(state: string, registry: (() => RegistryClient) | null, mostBytes = CACHE_BYTES): Artifacts {
  const directory = join(state, 'blobs');
  mkdirSync(directory, { recursive: true, mode: 0o700 });

  return {
    async fetch({ repository, blob, size }) {
      const path = join(directory, blob.replace(':', '-'));
      if (await isWhole(path, blob)) {
        await utimes(path, new Date(), new Date());
        return path;
      }
      if (registry === null)
        throw new ResourceFailed(`blob ${blob} of ${repository} is not on this machine, and without a link it cannot be fetched`);
      await rm(path, { force: true });
      await registry().fetchBlobToFile(repository, blob, path, { maxBytes: size });
      return path;
    },
    async prune() {
      const names = await readdir(directory);
      const files = await Promise.all(
        names.map(async (name) => {
          const { size, mtimeMs } = await stat(join(directory, name));
          return { name, size, mtimeMs };
        }),
      );
      let sum = 0;
      for (const { name, size } of files.sort((a, b) => b.mtimeMs - a.mtimeMs)) {
        sum += size;
        // What a killed fetch left is nobody's.
        if (sum > mostBytes || name.endsWith('.part')) await rm(join(directory, name), { force: true });
      }
    },
  };
}

async function isWhole(path: string, digest: string): Promise<boolean> {
  const found = statOf(path);
  return found !== null && `sha256:${await sha256OfFile(path, found.size)}` === digest;
}

/** In hex. */
export async function sha256OfFile(path: string, size: number): Promise<string> {
  const hash = createHash('sha256');
  // A stream costs more than a small file.
  if (size <= SMALL_BYTES) return hash.update(readFileSync(path)).digest('hex');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { EnvironmentError } from '../domain/errors';
import { deriveGraph } from '../imports';
import type { ManifestReading } from '../schema/manifestFile';
import { MANIFEST_FILE, MANIFEST_MAX_BYTES, parseManifest } from '../schema/manifestFile';
import type { InspectAnswer, InspectRequest } from '../schema/messages';
import { checkoutCommit } from '../source';
import type { Unsigned } from './answers';
import type { BuilderLimits } from './config';
import type { BuilderHome } from './home';
import { reasonLine } from './reason';
import type { Stopper } from './stopper';

/** Says what a commit declares, without running anything of it. What stands in the code besides is derived from the same tree. */
export async function performInspection(
  request: InspectRequest,
  tools: { home: BuilderHome; limits: BuilderLimits },
  stopper: Stopper,
): Promise<Unsigned<InspectAnswer>> {
  const work = await tools.home.newWork();
  try {
    const { repository, ref, commit } = request;
    await checkoutCommit({ repository, ref, commit, dir: work.tree, timeoutMs: tools.limits.checkoutMs, signal: stopper.signal });
    const reading = await readManifest(work.tree, request.module);
    if (!reading.valid) return { outcome: 'invalid', problems: reading.problems };
    const { notes, ...derived } = await deriveGraph(work.tree, reading.manifest, { signal: stopper.signal, cache: tools.home.programs });
    return { outcome: 'valid', manifest: reading.written, notes: [...reading.notes, ...notes], ...derived };
  } catch (error) {
    const why = stopper.why();
    if (why !== null) return { outcome: 'environment', reason: why.reason };
    return { outcome: 'environment', reason: reasonLine(error instanceof Error ? error.message : String(error)) };
  } finally {
    await work.remove();
  }
}

/** A link is not followed: the tree was written by anyone, and the file it names may be the builder's. */
export async function readManifest(tree: string, module: string): Promise<ManifestReading> {
  const path = join(tree, MANIFEST_FILE);
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { isFile, size } = await file.stat().then((found) => ({ isFile: found.isFile(), size: found.size }));
      if (!isFile) return unreadable('it is not a file');
      const buffer = Buffer.alloc(Math.min(size, MANIFEST_MAX_BYTES + 1));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
      return parseManifest(buffer.subarray(0, bytesRead), { module });
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT')
      return unreadable(`there is no ${MANIFEST_FILE} at the root of the repository: add one that begins with \`module: ${module}\``);
    if (code === 'ELOOP') return unreadable('it is a symbolic link, which is not followed here: put the file itself there');
    throw new EnvironmentError(`could not read ${MANIFEST_FILE}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

function unreadable(message: string): ManifestReading {
  return { valid: false, problems: [{ file: MANIFEST_FILE, line: 1, key: '', message }] };
}

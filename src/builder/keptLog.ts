import type { RegistryClient } from '../registry';
import { EMPTY_CONFIG, ociManifest } from '../registry/artifact';
import { repositoryOf } from './outputs';

const LOG_TYPE = 'application/vnd.tally.log.v1';
const TRIES = 3;

/**
 * Keeps the whole log under the tag `log-<request>`, that of the newest attempt. A log that cannot be kept changes no verdict:
 * the answer is then null, else the digest of the compressed text.
 */
export async function pushKeptLog(registry: RegistryClient, module: string, request: string, text: Buffer): Promise<string | null> {
  const repository = repositoryOf(module);
  for (let tried = 0; tried < TRIES; tried++) {
    try {
      await registry.pushBlob(repository, EMPTY_CONFIG);
      const { digest, size } = await registry.pushBlob(repository, text);
      const layer = { mediaType: 'text/plain+gzip', digest, size };
      await registry.pushManifest(repository, ociManifest({ artifactType: LOG_TYPE, layer }), { tag: `log-${request}` });
      return digest;
    } catch {
      // Tried again at once: a connection that broke off is the usual reason.
    }
  }
  return null;
}

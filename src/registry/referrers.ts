import { z } from 'zod';
import { EnvironmentError } from '../domain/errors';
import { EMPTY_CONFIG, ociManifest } from './artifact';
import { checkDigest, checkRepository } from './digest';
import type { Http } from './http';
import type { Pushed, RegistryClient } from './types';
import { INDEX_TYPE, MANIFEST_TYPE } from './types';

/** The artifactType under which a build's signed statement refers to its artifact. */
export const PROVENANCE_TYPE = 'application/vnd.in-toto+json';

interface Store {
  pushBlob: RegistryClient['pushBlob'];
  getManifest: RegistryClient['getManifest'];
  pushManifest(repository: string, manifest: object, how?: { tag?: string; mediaType?: string }): Promise<Pushed & { headers: Headers }>;
}

// Written by others too: unknown keys are kept, so that what is written back loses nothing.
const index = z.looseObject({
  manifests: z.array(z.looseObject({ mediaType: z.string(), digest: z.string(), size: z.number(), artifactType: z.string().optional() })),
});
type Index = z.infer<typeof index>;

const PAGES_MAX = 100;
const INDEX_MAX = 4 << 20;
const WRITE_TRIES = 5;

/** Referrers by the registry's list, or by the tag `sha256-<hex>` that the specification gives clients of registries without one. */
export function createReferrers(http: Http, store: Store): Pick<RegistryClient, 'referrers' | 'attachReferrer'> {
  // The tag is read, changed and written: within this process one at a time, across processes read again after the write.
  const writing = new Map<string, Promise<void>>();

  function parseIndex(content: unknown, what: string): Index {
    const parsed = index.safeParse(content);
    if (parsed.success) return parsed.data;
    throw new EnvironmentError(`registry ${http.name}: could not ${what}: what came is not a list of referrers`);
  }

  async function fromTag(repository: string, tag: string): Promise<Index> {
    const found = await store.getManifest(repository, tag);
    return found === null ? { manifests: [] } : parseIndex(found.manifest, `read the referrers tag ${tag} of ${repository}`);
  }

  /** `null` where the registry keeps no list of its own. */
  async function fromList(repository: string, digest: string): Promise<Index['manifests'] | null> {
    const what = `list the referrers of ${digest} in ${repository}`;
    const manifests: Index['manifests'] = [];
    let url: URL | null = http.resolve(`v2/${repository}/referrers/${digest}`);
    for (let page = 0; url !== null && page < PAGES_MAX; page++) {
      const answer = await http.send({ method: 'GET', url, what, headers: { accept: INDEX_TYPE }, accept: [200, 404] });
      if (answer.status === 404) {
        await answer.discard();
        return null;
      }
      const content = await answer.bytes(INDEX_MAX);
      manifests.push(...parseIndex(asJson(content), what).manifests);
      const next: string | undefined = /<([^>]+)>\s*;\s*rel="?next"?/.exec(answer.headers.get('link') ?? '')?.[1];
      url = next === undefined ? null : new URL(next, url);
    }
    return manifests;
  }

  async function addToTag(repository: string, tag: string, entry: Index['manifests'][number]): Promise<void> {
    for (let tried = 0; tried < WRITE_TRIES; tried++) {
      const present = await fromTag(repository, tag);
      if (present.manifests.some((m) => m.digest === entry.digest)) return;
      const manifests = [...present.manifests, entry];
      await store.pushManifest(repository, { ...present, schemaVersion: 2, mediaType: INDEX_TYPE, manifests }, { tag, mediaType: INDEX_TYPE });
    }
    const after = await fromTag(repository, tag);
    if (after.manifests.some((m) => m.digest === entry.digest)) return;
    throw new EnvironmentError(`registry ${http.name}: could not write the referrers tag ${tag} of ${repository}: others kept writing it`);
  }

  async function oneAtATime(key: string, work: () => Promise<void>): Promise<void> {
    const before = writing.get(key) ?? Promise.resolve();
    const mine = before.catch(() => undefined).then(work);
    writing.set(key, mine);
    try {
      await mine;
    } finally {
      if (writing.get(key) === mine) writing.delete(key);
    }
  }

  return {
    async referrers(repository, digest) {
      checkRepository(repository);
      checkDigest(digest);
      const manifests = (await fromList(repository, digest)) ?? (await fromTag(repository, fallbackTag(digest))).manifests;
      return manifests.map((m) => ({ digest: m.digest, artifactType: m.artifactType ?? '' }));
    },

    async attachReferrer(repository, subject, artifactType, layer) {
      checkRepository(repository);
      checkDigest(subject.digest);
      await store.pushBlob(repository, EMPTY_CONFIG);
      const { digest: layerDigest, size: layerSize } = await store.pushBlob(repository, layer.content);
      const descriptor = { mediaType: layer.mediaType, digest: layerDigest, size: layerSize };
      const { digest, size, headers } = await store.pushManifest(repository, ociManifest({ artifactType, layer: descriptor, subject }));
      // By the specification this header is how a registry says that it keeps the list itself.
      if (headers.get('oci-subject') === null) {
        const tag = fallbackTag(subject.digest);
        await oneAtATime(`${repository}:${tag}`, () => addToTag(repository, tag, { mediaType: MANIFEST_TYPE, digest, size, artifactType }));
      }
      return { digest };
    },
  };
}

function fallbackTag(digest: string): string {
  return digest.replace(':', '-');
}

function asJson(content: Buffer): unknown {
  try {
    return JSON.parse(content.toString('utf8'));
  } catch {
    return undefined;
  }
}

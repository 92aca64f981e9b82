import { z } from 'zod';
import { EnvironmentError } from '../domain/errors';
import type { ArtifactKind } from '../schema/primitives';
import type { Descriptor, RegistryClient } from './types';
import { MANIFEST_TYPE } from './types';

/**
 * How an artifact lies in the registry: an OCI manifest with one layer, in the repository `tally/<module>`. The manifest's
 * digest names the artifact, so nothing in it may depend on when, where or by whom it was made.
 */
const TAR = 'application/vnd.oci.image.layer.v1.tar+gzip';
const KINDS: Readonly<Record<ArtifactKind, { readonly artifactType: string; readonly layerType: string }>> = {
  archive: { artifactType: 'application/vnd.tally.archive.v1', layerType: TAR },
  file: { artifactType: 'application/vnd.tally.file.v1', layerType: 'application/octet-stream' },
  go: { artifactType: 'application/vnd.tally.go.v1', layerType: TAR },
  npm: { artifactType: 'application/vnd.tally.npm.v1', layerType: TAR },
  wheel: { artifactType: 'application/vnd.tally.wheel.v1', layerType: 'application/octet-stream' },
  crate: { artifactType: 'application/vnd.tally.crate.v1', layerType: TAR },
};

export const EMPTY_CONFIG = Buffer.from('{}');
const EMPTY_DESCRIPTOR = {
  mediaType: 'application/vnd.oci.empty.v1+json',
  digest: 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
  size: 2,
};

export type PushedArtifact = Descriptor & { layer: Descriptor };

export interface ArtifactLayer {
  kind: ArtifactKind;
  digest: string;
  /** Bytes. */
  size: number;
}

/** The order of the keys is part of the digest. */
export function ociManifest(parts: { artifactType: string; layer: Descriptor; subject?: Descriptor }): object {
  return {
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    artifactType: parts.artifactType,
    config: EMPTY_DESCRIPTOR,
    layers: [plain(parts.layer)],
    ...(parts.subject === undefined ? {} : { subject: plain(parts.subject) }),
  };
}

function plain({ mediaType, digest, size }: Descriptor): Descriptor {
  return { mediaType, digest, size };
}

/**
 * Pushes a packed archive or a file and tags it, since a registry may collect what has no tag. The answer is the manifest's
 * descriptor, which is the artifact's name and the subject of its provenance. Errors: EnvironmentError.
 */
export async function pushArtifact(
  client: RegistryClient,
  artifact: { repository: string; kind: ArtifactKind; path: string; tag: string },
): Promise<PushedArtifact> {
  const { repository, kind, path, tag } = artifact;
  const { artifactType, layerType } = KINDS[kind];
  await client.pushBlob(repository, EMPTY_CONFIG);
  const layer = { ...(await client.pushBlobFile(repository, path)), mediaType: layerType };
  const { digest, size } = await client.pushManifest(repository, ociManifest({ artifactType, layer }), { tag });
  return { digest, size, mediaType: MANIFEST_TYPE, layer };
}

const artifactManifest = z.looseObject({
  artifactType: z.string(),
  layers: z.tuple([z.looseObject({ digest: z.string().regex(/^sha256:[0-9a-f]{64}$/), size: z.number().int().nonnegative() })]),
});

/** The one blob of an artifact, which has been asked for by its digest. Errors: EnvironmentError where it is missing or no artifact of Tally's. */
export async function artifactLayer(client: RegistryClient, repository: string, digest: string): Promise<ArtifactLayer> {
  const found = await client.getManifest(repository, digest);
  if (found === null) throw new EnvironmentError(`the registry does not hold artifact ${digest} of ${repository}: build it again`);
  const parsed = artifactManifest.safeParse(found.manifest);
  const kind = parsed.success ? (Object.keys(KINDS) as ArtifactKind[]).find((k) => KINDS[k].artifactType === parsed.data.artifactType) : undefined;
  if (!parsed.success || kind === undefined)
    throw new EnvironmentError(`${digest} of ${repository} is not an archive or a file that Tally can place`);
  const [layer] = parsed.data.layers;
  return { kind, digest: layer.digest, size: layer.size };
}

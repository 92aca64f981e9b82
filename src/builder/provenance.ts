import type { KeyPair } from '../link/signing';
import { sign } from '../link/signing';
import type { PushedArtifact, RegistryClient } from '../registry';
import { PROVENANCE_TYPE } from '../registry';
import type { BuildRequest, Input } from '../schema/messages';
import type { ArtifactKind } from '../schema/primitives';
import { withoutLogin } from './reason';

/** Who made what, out of what, on whose behalf: an in-toto statement with SLSA provenance, signed, beside each artifact. */

export const STATEMENT_TYPE = 'application/vnd.in-toto+json';
const ENVELOPE_TYPE = 'application/vnd.dsse.envelope.v1+json';
/** Names what `externalParameters` mean; changes when they do. */
const BUILD_TYPE = 'urn:tally:build:1';

export interface Built {
  name: string;
  kind: ArtifactKind;
  repository: string;
  pushed: PushedArtifact;
}

export interface ProvenanceParts {
  request: BuildRequest;
  builder: string;
  /** What the build really used, as it was fetched. */
  inputs: readonly Input[];
  artifacts: readonly Built[];
  startedAt: string;
  finishedAt: string;
}

function provenanceStatement({ request, builder, inputs, artifacts, startedAt, finishedAt }: ProvenanceParts): object {
  const repository = withoutLogin(request.repository);
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: artifacts.map(({ name, pushed }) => ({ name, digest: { sha256: hex(pushed.digest) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { module: request.module, repository, ref: request.ref, commit: request.commit, platform: request.platform },
        internalParameters: { mesh: request.mesh, closure: request.closure },
        resolvedDependencies: [
          { uri: `git+${repository}@${request.ref}`, digest: { gitCommit: request.commit } },
          ...inputs.map((input) => ({
            name: `${input.module}/${input.artifact}`,
            uri: `oci:${input.repository}@${input.digest}`,
            digest: { sha256: hex(input.digest) },
            annotations: { module: input.module, artifact: input.artifact, kind: input.kind, commit: input.commit },
          })),
        ],
      },
      runDetails: {
        builder: { id: `urn:tally:builder:${request.mesh}:${builder}` },
        metadata: { invocationId: `${request.request}/${request.attempt}`, startedOn: startedAt, finishedOn: finishedAt },
      },
    },
  };
}

/** Attaches the signed statement to each artifact. The answer is the digest of the envelope, the same beside all; null without artifacts. */
export async function attachProvenance(registry: RegistryClient, key: KeyPair, parts: ProvenanceParts): Promise<string | null> {
  if (parts.artifacts.length === 0) return null;
  const envelope = sign(STATEMENT_TYPE, provenanceStatement(parts), key.privateKey);
  const layer = { mediaType: ENVELOPE_TYPE, content: Buffer.from(JSON.stringify(envelope)) };
  let digest: string | null = null;
  for (const { repository, pushed } of parts.artifacts) {
    digest = (await registry.pushBlob(repository, layer.content)).digest;
    const { mediaType, size } = pushed;
    await registry.attachReferrer(repository, { mediaType, size, digest: pushed.digest }, PROVENANCE_TYPE, layer);
  }
  return digest;
}

function hex(digest: string): string {
  return digest.slice('sha256:'.length);
}

/**
 * The OCI distribution client. It moves blobs and manifests by digest, streaming, each call with a time-out, and checks
 * every digest it is handed. Whatever goes wrong here is environmental: it says nothing about a module.
 */
export { createRegistryClient } from './client';
export type { RegistryClient, RegistryOptions } from './client';
export { artifactLayer, pushArtifact } from './artifact';
export type { ArtifactKind, ArtifactLayer, PushedArtifact } from './artifact';
export { PROVENANCE_TYPE } from './referrers';

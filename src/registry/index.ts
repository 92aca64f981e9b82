/**
 * The OCI distribution client. It moves blobs and manifests by digest, streaming, each call with a time-out, and checks
 * every digest it is handed. Whatever goes wrong here is environmental: it says nothing about a module.
 */

export type { PushedArtifact } from './artifact';
export { artifactLayer, pushArtifact } from './artifact';
export { createRegistryClient } from './client';
export { describeFile } from './digest';
export { PROVENANCE_TYPE } from './referrers';
export type { RegistryClient } from './types';

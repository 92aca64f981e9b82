/** What names content in a registry. */
export interface Descriptor {
  digest: string;
  /** Bytes. */
  size: number;
  mediaType: string;
}

export interface Pushed {
  digest: string;
  /** Bytes. */
  size: number;
}

/** All methods throw EnvironmentError, and UsageError for a name that no registry can hold. Sizes are bytes. */
export interface RegistryClient {
  /** Sends nothing when the registry has it already. */
  pushBlobFile(repository: string, path: string): Promise<Pushed>;
  pushBlob(repository: string, content: Buffer): Promise<Pushed>;
  /** Without a tag it is put by digest, and a registry may collect it. */
  pushManifest(repository: string, manifest: object, options?: { tag?: string; mediaType?: string }): Promise<Pushed>;
  /** `null`: the registry answers and does not have it. */
  getManifest(repository: string, reference: string): Promise<{ digest: string; manifest: unknown } | null>;
  /** The file appears whole and verified, or not at all. */
  fetchBlobToFile(repository: string, digest: string, path: string, options?: { maxBytes?: number }): Promise<void>;
  getBlob(repository: string, digest: string, maxBytes: number): Promise<Buffer>;
  /** What refers to a manifest, by the registry's own list or by the specification's tag where it has none. */
  referrers(repository: string, digest: string): Promise<Array<{ digest: string; artifactType: string }>>;
  attachReferrer(
    repository: string,
    subject: Descriptor,
    artifactType: string,
    layer: { mediaType: string; content: Buffer },
  ): Promise<{ digest: string }>;
}

export interface RegistryOptions {
  /** As in http://127.0.0.1:5000; user and password may stand in it. */
  url: string;
  /** Longest time in which nothing moves. */
  timeoutMs?: number;
  username?: string;
  password?: string;
}

export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
export const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';

import { z } from 'zod';
import { absolutePath, digest, name } from './primitives';

/**
 * What one node should hold: derived by the control plane, signed, never edited. Durations are milliseconds here.
 * The content digest is of `resources` alone, canonical JSON (RFC 8785), sha256.
 */

export const DECLARATION_VERSION = 1;
export const DECLARATION_TYPE = 'application/vnd.tally.declaration.v1+json';

const artifactRef = z.strictObject({
  repository: z.string(),
  /** Digest of the OCI manifest: the artifact's name. */
  digest,
  /** Digest and size of its one layer: what the host fetches. */
  blob: digest,
  size: z.number().int().nonnegative(),
});

const ms = z.number().int().nonnegative();
const mode = z.string().regex(/^0[0-7]{3}$/);

/** Of a credential of the mesh, readable by this node alone. */
const sealedSecret = z.strictObject({
  /** `owner/name`. */
  credential: z.string().min(1).max(200),
  version: z.number().int().positive(),
  sealed: z.string().min(1).max(20_000),
});

/** What stands in a content as `${secret.NAME}`. */
const secretName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/);

export const shapes = {
  file: z.strictObject({
    path: absolutePath,
    mode,
    content: z.string().optional(),
    artifact: artifactRef.optional(),
    /** Filled into `content` on the node; such a file is for its owner alone. */
    secrets: z.record(secretName, sealedSecret).optional(),
  }),
  directory: z.strictObject({ path: absolutePath, mode }),
  archive: z.strictObject({ path: absolutePath, artifact: artifactRef }),
  service: z.strictObject({
    name,
    run: z.array(z.string()).min(1),
    env: z.record(z.string(), z.string()),
    /** `NAME=value` a line, read at each start: where what nobody else may see comes from. */
    environmentFile: absolutePath.optional(),
    directory: absolutePath.optional(),
    ready: z.strictObject({ http: z.string().optional(), tcp: z.string().optional(), exec: z.array(z.string()).optional(), within: ms }).optional(),
    stopWithin: ms,
  }),
  action: z.strictObject({
    name,
    run: z.array(z.string()).min(1),
    unless: z.array(z.string()).min(1),
    /** Takes away what `run` made, when it is no longer declared. */
    undo: z.array(z.string()).min(1).optional(),
    timeout: ms,
  }),
} as const;

const base = {
  module: name,
  id: z.string().min(1),
  /** Of an instance that the module makes for another one: what fails of it leaves the other parts as they are. */
  part: name.optional(),
};

/** `id` is `<shape>/<name or path without the leading slash>`, unique within its module. */
export const declaredResource = z.discriminatedUnion('shape', [
  z.strictObject({ ...base, shape: z.literal('file'), spec: shapes.file }),
  z.strictObject({ ...base, shape: z.literal('directory'), spec: shapes.directory }),
  z.strictObject({ ...base, shape: z.literal('archive'), spec: shapes.archive }),
  z.strictObject({ ...base, shape: z.literal('service'), spec: shapes.service }),
  z.strictObject({ ...base, shape: z.literal('action'), spec: shapes.action }),
]);

export const declaration = z.strictObject({
  version: z.literal(DECLARATION_VERSION),
  mesh: name,
  node: name,
  sequence: z.number().int().positive(),
  digest,
  /** What each module's resources come from; outside the content digest. */
  builds: z.record(name, z.strictObject({ build: z.string(), commit: z.string() })),
  resources: z.array(declaredResource),
});

/** What a host may read beside the shapes; one that does not say so in its beat does not. */
export const FEATURES = ['secrets', 'undo', 'environmentFile', 'parts'] as const;

export type Feature = (typeof FEATURES)[number];
export type SealedSecret = z.infer<typeof sealedSecret>;
export type ArtifactRef = z.infer<typeof artifactRef>;
export type DeclaredResource = z.infer<typeof declaredResource>;
export type Declaration = z.infer<typeof declaration>;
export type Shape = DeclaredResource['shape'];

import { z } from 'zod';
import { artifactKind, commit, digest, instant, name } from './primitives';

/** Everything that crosses the broker, apart from declarations. Each message is JSON with `v: 1`. */

const v = z.literal(1);
const count = z.number().int().nonnegative();
const requestKey = { request: z.string().min(1).max(64), attempt: z.number().int().positive() };

/* control → builder */

export const inspectRequest = z.strictObject({
  v,
  kind: z.literal('inspect'),
  ...requestKey,
  module: name,
  repository: z.string(),
  ref: z.string(),
  commit,
});

const language = z.enum(['go', 'npm', 'python', 'rust']);

/** A name as its language writes it: a Go module path, an npm package, a Python import package, a crate's library name. */
const packageName = z.strictObject({ language, name: z.string().min(1).max(512) });

/** An artifact of another module that the build is to use, transitive ones included, each once. */
export const input = z.strictObject({
  module: name,
  artifact: name,
  kind: artifactKind,
  repository: z.string(),
  digest,
  blob: digest,
  size: count,
  commit,
  /** By what names code imports it. */
  names: z.array(packageName),
  /** Only tests of the module reach it. */
  test: z.boolean(),
});

export const buildRequest = z.strictObject({
  v,
  kind: z.literal('build'),
  ...requestKey,
  mesh: name,
  module: name,
  repository: z.string(),
  ref: z.string(),
  commit,
  platform: z.string(),
  closure: digest,
  inputs: z.array(input),
  /** Build it twice, apart, and say which files differ. */
  check: z.boolean().optional(),
});

/* builder → control, by request and reply */

export const claim = z.strictObject({ v, ...requestKey, builder: name, platform: z.string() });
export const claimReply = z.strictObject({ v, answer: z.enum(['go', 'drop']), reason: z.string() });

/* builder → control */

const answered = { v, ...requestKey, builder: name, startedAt: instant, endedAt: instant };

export const problem = z.strictObject({ file: z.string(), line: count, key: z.string(), message: z.string() });

/** As its author wrote it, before defaults and units: whoever reads it parses it with `manifest`. */
const writtenManifest = z.record(z.string(), z.unknown());

const MOST_NAMES = 20_000;
const at = { file: z.string(), line: count };

/** A name that the module's code exports, and the artifact that carries it. */
const exportedName = z.strictObject({ ...packageName.shape, artifact: name, ...at });

/** A name that the module's code imports: once for its code and once for its tests, with the first place of each. */
const importedName = z.strictObject({
  ...packageName.shape,
  /** Names of packages that this import could be of, the most specific first. */
  candidates: z.array(z.string().min(1).max(512)).min(1).max(64),
  /** Only tests import it. */
  test: z.boolean(),
  ...at,
});

/** `unparsed`: what this file imports cannot be known, so the edges of before stay in force. `computed`: one import whose name only a run could tell. */
const unknownImport = z.strictObject({ kind: z.enum(['unparsed', 'computed']), ...at, reason: z.string().max(500) });

const derived = {
  exports: z.array(exportedName).max(MOST_NAMES).optional(),
  imports: z.array(importedName).max(MOST_NAMES).optional(),
  unknown: z.array(unknownImport).max(1_000).optional(),
};

export const inspectAnswer = z.discriminatedUnion('outcome', [
  z.strictObject({
    ...answered,
    kind: z.literal('inspect'),
    outcome: z.literal('valid'),
    manifest: writtenManifest,
    notes: z.array(z.string()),
    ...derived,
  }),
  z.strictObject({ ...answered, kind: z.literal('inspect'), outcome: z.literal('invalid'), problems: z.array(problem).min(1) }),
  z.strictObject({ ...answered, kind: z.literal('inspect'), outcome: z.literal('environment'), reason: z.string() }),
]);

export const builtArtifact = z.strictObject({
  name,
  kind: artifactKind,
  repository: z.string(),
  digest,
  blob: digest,
  size: count,
});

const steps = z.record(z.string(), count).describe('milliseconds by step');

/** Names that the build reached for and did not find: those of the mesh are its failure, whatever step it was. */
const missing = z.array(packageName).max(100).optional();

/** What a second build of the same made otherwise; empty when the two are equal. Left out when nobody asked. */
const check = z.strictObject({ differing: z.array(z.strictObject({ artifact: name, file: z.string() })).max(1_000) }).optional();

export const buildAnswer = z.discriminatedUnion('outcome', [
  z.strictObject({
    ...answered,
    kind: z.literal('build'),
    outcome: z.literal('fit'),
    artifacts: z.array(builtArtifact),
    inputs: z.array(input),
    provenance: digest.nullable(),
    check,
    log: digest.nullable(),
    steps,
  }),
  z.strictObject({
    ...answered,
    kind: z.literal('build'),
    outcome: z.literal('failed'),
    step: z.string(),
    reason: z.string(),
    inputs: z.array(input),
    missing,
    log: digest.nullable(),
    steps,
  }),
  z.strictObject({
    ...answered,
    kind: z.literal('build'),
    outcome: z.literal('environment'),
    step: z.string(),
    reason: z.string(),
    missing,
    log: digest.nullable(),
    steps,
  }),
  z.strictObject({ ...answered, kind: z.literal('build'), outcome: z.literal('cancelled'), reason: z.string(), log: digest.nullable(), steps }),
]);

export const answer = z.union([inspectAnswer, buildAnswer]);

/** Sent every beat, busy or idle. A reply `drop` to the claim that renews a taken request tells the builder to stop. */
export const builderBeat = z.strictObject({
  v,
  builder: name,
  platforms: z.array(z.string()).min(1),
  at: instant,
  publicKey: z.string(),
  version: z.string(),
  busy: z.array(z.strictObject({ ...requestKey, step: z.string(), since: instant })).max(4),
});

export const logLines = z.strictObject({ v, ...requestKey, from: count, lines: z.array(z.string().max(8_192)).max(500) });

/* host → control: inside a DSSE envelope signed by the node's key, on the exchange from.<node> */

const held = z.strictObject({ sequence: count, digest }).nullable();

export const nodeBeat = z.strictObject({
  v,
  type: z.literal('beat'),
  node: name,
  epoch: z.string(),
  at: instant,
  publicKey: z.string(),
  /** To what its secrets are sealed; hosts of before have none. */
  sealKey: z.string().optional(),
  hostVersion: z.string(),
  reads: z.strictObject({ versions: z.array(count), shapes: z.array(z.string()), features: z.array(z.string()).optional() }),
  received: held,
  applied: held,
  reportNumber: count,
});

export const moduleReport = z.strictObject({
  module: name,
  /** sha256 of the canonical JSON of this module's resources in the declaration that was applied. */
  digest,
  state: z.enum(['held', 'failed']),
  failures: z.array(z.strictObject({ resource: z.string(), message: z.string().max(2_000) })),
  changes: z.array(z.strictObject({ resource: z.string(), cause: z.enum(['intentional', 'corrective']) })),
  /** Of a failed one whose own resources hold: the parts that do not. */
  failedParts: z.array(name).optional(),
});

export const nodeReport = z.strictObject({
  v,
  type: z.literal('report'),
  node: name,
  epoch: z.string(),
  number: z.number().int().positive(),
  at: instant,
  /** The declaration this is about; null only for a refusal before the first was accepted. */
  declaration: held,
  modules: z.array(moduleReport),
  removed: z.array(z.string()),
  /** A declaration that was refused whole; what runs goes on running. */
  refused: z.strictObject({ sequence: count.nullable(), reason: z.string() }).nullable(),
});

/** What is signed, in the form of DSSE: payload and signatures in base64. */
export const envelope = z.strictObject({
  payloadType: z.string(),
  payload: z.base64(),
  signatures: z
    .array(z.strictObject({ keyid: z.string(), sig: z.base64() }))
    .min(1)
    .max(4),
});

export const NODE_MESSAGE_TYPE = 'application/vnd.tally.node.v1+json';

export type InspectRequest = z.infer<typeof inspectRequest>;
export type BuildRequest = z.infer<typeof buildRequest>;
export type Input = z.infer<typeof input>;
export type PackageName = z.infer<typeof packageName>;
export type Claim = z.infer<typeof claim>;
export type ClaimReply = z.infer<typeof claimReply>;
export type Problem = z.infer<typeof problem>;
export type InspectAnswer = z.infer<typeof inspectAnswer>;
export type BuildAnswer = z.infer<typeof buildAnswer>;
export type BuiltArtifact = z.infer<typeof builtArtifact>;
export type Language = z.infer<typeof language>;
export type ExportedName = z.infer<typeof exportedName>;
export type ImportedName = z.infer<typeof importedName>;
export type UnknownImport = z.infer<typeof unknownImport>;
export type Answer = z.infer<typeof answer>;
export type BuilderBeat = z.infer<typeof builderBeat>;
export type LogLines = z.infer<typeof logLines>;
export type NodeBeat = z.infer<typeof nodeBeat>;
export type ModuleReport = z.infer<typeof moduleReport>;
export type NodeReport = z.infer<typeof nodeReport>;
export type Envelope = z.infer<typeof envelope>;

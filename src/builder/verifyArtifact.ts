import { z } from 'zod';
import { closureOf } from '../domain/closure';
import { UsageError } from '../domain/errors';
import { canonicalDigest } from '../link/canonical';
import { VerificationError } from '../link/errors';
import { verify } from '../link/signing';
import type { RegistryClient } from '../registry';
import { artifactLayer, PROVENANCE_TYPE } from '../registry';
import { type Envelope, envelope } from '../schema/messages';
import type { ArtifactKind } from '../schema/primitives';
import { digest, name } from '../schema/primitives';
import { STATEMENT_TYPE } from './provenance';

/**
 * What an artifact is made of, by the registry alone: its provenance is signed by a key that is known and is about it, the closure that it
 * records follows from the dependencies that it lists, and each of them is there.
 */

export interface ArtifactRef {
  repository: string;
  /** A digest or a tag. */
  reference: string;
}

export interface Verification {
  isGood: boolean;
  artifact: { repository: string; digest: string; kind: ArtifactKind; name: string | null };
  /** The one of the keys that signed the statement; which builder that is, the statement only claims. */
  key: string | null;
  /** As the signed statement says; null when none is signed by a key that is known. */
  built: {
    module: string;
    git: string;
    ref: string;
    commit: string;
    platform: string;
    mesh: string;
    closure: string;
    builder: string;
    startedAt: string;
    finishedAt: string;
  } | null;
  checks: Array<{ check: 'signature' | 'subject' | 'closure' | 'dependencies'; isGood: boolean; says: string }>;
  dependencies: Array<{ module: string; artifact: string; repository: string; digest: string; isThere: boolean }>;
}

const ENVELOPE_MAX = 4 << 20;
/** One artifact may come out of many builds, each with a statement of its own. */
const STATEMENTS_MOST = 100;
const SIDE_BY_SIDE = 8;

const statement = z.looseObject({
  subject: z.array(z.looseObject({ name: z.string(), digest: z.looseObject({ sha256: z.string() }) })),
  predicate: z.looseObject({
    buildDefinition: z.looseObject({
      externalParameters: z.looseObject({ module: name, repository: z.string(), ref: z.string(), commit: z.string(), platform: z.string() }),
      internalParameters: z.looseObject({ mesh: z.string(), closure: digest }),
      resolvedDependencies: z.array(
        z.looseObject({
          uri: z.string(),
          digest: z.looseObject({ sha256: z.string().optional(), gitCommit: z.string().optional() }),
          annotations: z.looseObject({ module: name, artifact: name }).optional(),
        }),
      ),
    }),
    runDetails: z.looseObject({
      builder: z.looseObject({ id: z.string() }),
      metadata: z.looseObject({ startedOn: z.string(), finishedOn: z.string() }),
    }),
  }),
});

type Statement = z.infer<typeof statement>;
type Check = Verification['checks'][number];

/** `tally/core@sha256:…`, `tally/core:TAG`, with or without `oci:` before it. UsageError for anything else. */
export function parseArtifactRef(text: string): ArtifactRef {
  const [, repository, byDigest, byTag] =
    /^(?:oci:)?([a-z0-9][a-z0-9._/-]*)(?:@(sha256:[0-9a-f]{64})|:([A-Za-z0-9_][A-Za-z0-9._-]*))$/.exec(text) ?? [];
  const reference = byDigest ?? byTag;
  if (repository === undefined || reference === undefined)
    throw new UsageError(`"${text}" names no artifact: write its repository and its digest or tag, as in tally/core@sha256:… or tally/core:TAG`);
  return { repository, reference };
}

/**
 * @param keys public keys of builders, base64 of their SPKI form: nobody else's signature counts.
 * @throws EnvironmentError when the registry does not answer; UsageError when it holds no such artifact.
 */
export async function verifyArtifact(
  registry: RegistryClient,
  { repository, reference }: ArtifactRef,
  keys: readonly string[],
): Promise<Verification> {
  const found = await registry.getManifest(repository, reference);
  if (found === null)
    throw new UsageError(`the registry holds no ${repository} at ${reference}: tally verify MODULE looks at those of its effective build`);
  const { kind } = await artifactLayer(registry, repository, found.digest);
  const artifact = { repository, digest: found.digest, kind, name: null };
  const signed = await signedStatement(registry, repository, found.digest, keys);
  if (typeof signed === 'string') {
    return { isGood: false, artifact, key: null, built: null, checks: [{ check: 'signature', isGood: false, says: signed }], dependencies: [] };
  }
  const { subject, predicate } = signed.statement;
  const { externalParameters, internalParameters, resolvedDependencies } = predicate.buildDefinition;
  const about = subject.find((one) => `sha256:${one.digest.sha256}` === found.digest);
  const dependencies = await lookUp(registry, dependenciesOf(resolvedDependencies));
  const checks: Check[] = [
    { check: 'signature', isGood: true, says: `signed by ${predicate.runDetails.builder.id}` },
    about === undefined
      ? { check: 'subject', isGood: false, says: 'the statement is about other artifacts than this one' }
      : { check: 'subject', isGood: true, says: `it is ${about.name} of ${externalParameters.module}` },
    closureCheck(signed.statement),
    dependenciesCheck(dependencies),
  ];
  return {
    isGood: checks.every(({ isGood }) => isGood),
    artifact: { ...artifact, name: about?.name ?? null },
    key: signed.key,
    built: {
      ...{ module: externalParameters.module, git: externalParameters.repository, ref: externalParameters.ref, commit: externalParameters.commit },
      ...{ platform: externalParameters.platform, mesh: internalParameters.mesh, closure: internalParameters.closure },
      builder: predicate.runDetails.builder.id,
      ...{ startedAt: predicate.runDetails.metadata.startedOn, finishedAt: predicate.runDetails.metadata.finishedOn },
    },
    checks,
    dependencies,
  };
}

interface Signed {
  readonly statement: Statement;
  readonly key: string;
}

/** The newest that one of the keys signed; a string says why there is none. */
async function signedStatement(registry: RegistryClient, repository: string, artifact: string, keys: readonly string[]): Promise<Signed | string> {
  const referrers = (await registry.referrers(repository, artifact)).filter(({ artifactType }) => artifactType === PROVENANCE_TYPE);
  let why = 'it has no provenance: Tally did not build it, or its registry dropped what refers to it';
  const signed: Signed[] = [];
  for (const referrer of referrers.slice(-STATEMENTS_MOST)) {
    const read = await readStatement(registry, repository, referrer.digest, keys);
    if (typeof read === 'string') why = read;
    else signed.push(read);
  }
  const finishedOn = ({ statement: { predicate } }: Signed): string => predicate.runDetails.metadata.finishedOn;
  return signed.sort((a, b) => finishedOn(b).localeCompare(finishedOn(a)))[0] ?? why;
}

const referrerManifest = z.looseObject({ layers: z.tuple([z.looseObject({ digest })]) });

async function readStatement(registry: RegistryClient, repository: string, reference: string, keys: readonly string[]): Promise<Signed | string> {
  const manifest = referrerManifest.safeParse((await registry.getManifest(repository, reference))?.manifest);
  if (!manifest.success) return 'its provenance cannot be read: it has no envelope';
  const [{ digest: blob }] = manifest.data.layers;
  const signed = envelope.safeParse(parsed(await registry.getBlob(repository, blob, ENVELOPE_MAX)));
  if (!signed.success) return 'its provenance cannot be read: it is no signed envelope';
  try {
    const read = statement.safeParse(verify(signed.data, keys, STATEMENT_TYPE));
    if (!read.success) return 'its provenance is signed and does not say what a build of Tally says';
    return { statement: read.data, key: keys.find((key) => isBy(signed.data, key)) ?? '' };
  } catch (error) {
    if (error instanceof VerificationError) return `its provenance does not count: ${error.message}`;
    throw error;
  }
}

function isBy(signed: Envelope, key: string): boolean {
  try {
    verify(signed, [key], STATEMENT_TYPE);
    return true;
  } catch (error) {
    if (error instanceof VerificationError) return false;
    throw error;
  }
}

type Dependency = Omit<Verification['dependencies'][number], 'isThere'>;

/** The modules among them: what is of git is the source itself. */
function dependenciesOf(resolved: Statement['predicate']['buildDefinition']['resolvedDependencies']): Dependency[] {
  return resolved.flatMap(({ uri, digest: by, annotations }) => {
    if (annotations === undefined || by.sha256 === undefined) return [];
    const { module, artifact } = annotations;
    return [{ module, artifact, repository: uri.replace(/^oci:|@sha256:.*$/g, ''), digest: `sha256:${by.sha256}` }];
  });
}

async function lookUp(registry: RegistryClient, dependencies: readonly Dependency[]): Promise<Verification['dependencies']> {
  const looked: Verification['dependencies'] = [];
  for (let at = 0; at < dependencies.length; at += SIDE_BY_SIDE) {
    const some = dependencies.slice(at, at + SIDE_BY_SIDE);
    looked.push(
      ...(await Promise.all(some.map(async (one) => ({ ...one, isThere: (await registry.getManifest(one.repository, one.digest)) !== null })))),
    );
  }
  return looked;
}

function closureCheck({ predicate }: Statement): Check {
  const { externalParameters, internalParameters, resolvedDependencies } = predicate.buildDefinition;
  const inputs = dependenciesOf(resolvedDependencies);
  const commits = resolvedDependencies.flatMap(({ digest: by }) => (by.gitCommit === undefined ? [] : [by.gitCommit]));
  if (!commits.includes(externalParameters.commit))
    return { check: 'closure', isGood: false, says: `the commit ${externalParameters.commit.slice(0, 7)} is not among what it was built from` };
  const closure = closureOf({ commit: externalParameters.commit, inputs }, canonicalDigest);
  if (closure !== internalParameters.closure)
    return { check: 'closure', isGood: false, says: `what it was built from gives ${closure}, and it records ${internalParameters.closure}` };
  const counted = inputs.length === 0 ? 'no input' : `${inputs.length} ${inputs.length === 1 ? 'input' : 'inputs'}`;
  return { check: 'closure', isGood: true, says: `commit ${externalParameters.commit.slice(0, 7)} and ${counted} give the closure that it records` };
}

function dependenciesCheck(dependencies: Verification['dependencies']): Check {
  const gone = dependencies.filter(({ isThere }) => !isThere).map(({ module, artifact }) => `${module}/${artifact}`);
  if (gone.length > 0) return { check: 'dependencies', isGood: false, says: `the registry no longer holds ${gone.join(', ')}` };
  return { check: 'dependencies', isGood: true, says: dependencies.length === 0 ? 'it has none' : 'each is in the registry' };
}

function parsed(content: Buffer): unknown {
  try {
    return JSON.parse(content.toString('utf8'));
  } catch {
    return null;
  }
}

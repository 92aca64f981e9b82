import { STATEMENT_TYPE } from '../../src/builder';
import { parseArtifactRef, verifyArtifact } from '../../src/builder/verifyArtifact';
import { generateKeyPair, sign } from '../../src/link';
import { createRegistryClient, PROVENANCE_TYPE } from '../../src/registry';
import type { BuiltArtifact, Input } from '../../src/schema/messages';
import { envelope } from '../../src/schema/messages';
import { registryUrl } from '../support/servers';
import { answerOf, builderOfFile, fitOf, inputFrom, manifestOf, newRepository } from './world';

const mesh = builderOfFile();
const registry = createRegistryClient({ url: registryUrl() });

async function built(inputs: Input[] = [], content = 'module example.com/m\n'): Promise<{ made: BuiltArtifact; input: Input; provenance: string }> {
  const repository = newRepository();
  const commit = repository.commit({ ...manifestOf(repository, {}, { lib: { go: '.' } }), 'go.mod': content });
  const { artifacts, provenance } = fitOf(await answerOf(mesh.control, repository, commit, { inputs }));
  const [made] = artifacts;
  if (made === undefined) throw new Error('no artifact');
  return { made, input: inputFrom(made, { module: repository.module, commit }), provenance: provenance ?? '' };
}

/** Puts another statement beside an artifact: what the builder said, changed, and signed by `privateKey`. */
async function restate(made: BuiltArtifact, provenance: string, change: (text: string) => string, privateKey: string): Promise<void> {
  const signed = envelope.parse(JSON.parse((await registry.getBlob(made.repository, provenance, 1 << 20)).toString()));
  const text = change(Buffer.from(signed.payload, 'base64').toString());
  const layer = {
    mediaType: 'application/vnd.dsse.envelope.v1+json',
    content: Buffer.from(JSON.stringify(sign(STATEMENT_TYPE, JSON.parse(text), privateKey))),
  };
  const { repository, digest } = made;
  const manifest = await registry.getManifest(repository, digest);
  const size = JSON.stringify(manifest?.manifest).length;
  await registry.attachReferrer(repository, { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest, size }, PROVENANCE_TYPE, layer);
}

function refOf({ repository, digest }: BuiltArtifact) {
  return { repository, reference: digest };
}

describe('an artifact is verified from the registry alone', () => {
  test('by signature, subject, closure and dependencies', async () => {
    const lower = await built();
    const upper = await built([lower.input]);
    const found = await verifyArtifact(registry, refOf(upper.made), [mesh.builder.publicKey]);
    expect(found.checks.map(({ check, isGood }) => [check, isGood])).toEqual([
      ['signature', true],
      ['subject', true],
      ['closure', true],
      ['dependencies', true],
    ]);
    expect(found).toMatchObject({
      isGood: true,
      artifact: { kind: 'go', name: 'lib', digest: upper.made.digest },
      built: { module: upper.input.module, commit: upper.input.commit, builder: 'urn:tally:builder:home:builder-1' },
      dependencies: [{ module: lower.input.module, artifact: 'lib', repository: lower.made.repository, digest: lower.made.digest, isThere: true }],
    });
  });

  test('and is not good where nobody that is known signed', async () => {
    const { made } = await built();
    const found = await verifyArtifact(registry, refOf(made), [generateKeyPair().publicKey]);
    expect(found).toMatchObject({ isGood: false, built: null, checks: [{ check: 'signature', isGood: false }] });
    const none = await verifyArtifact(registry, refOf(made), []);
    expect(none.isGood).toBe(false);
  });

  test('nor where the closure that it records does not follow, or a dependency is gone, or the statement is about another', async () => {
    const lower = await built();
    const upper = await built([lower.input], 'module example.com/upper\n');
    const other = generateKeyPair();
    const wrong = async (change: (text: string) => string): Promise<string[]> => {
      await restate(upper.made, upper.provenance, change, other.privateKey);
      const found = await verifyArtifact(registry, refOf(upper.made), [other.publicKey]);
      expect(found.isGood).toBe(false);
      return found.checks.filter(({ isGood }) => !isGood).map(({ check }) => check);
    };
    const later = (text: string, year: number): string => text.replace(/"finishedOn":"\d{4}/, `"finishedOn":"${year}`);
    const hex = lower.made.digest.slice(7);
    expect(await wrong((text) => later(text.replaceAll(hex, 'a'.repeat(64)), 2101))).toEqual(['closure', 'dependencies']);
    expect(await wrong((text) => later(text.replaceAll(upper.made.digest.slice(7), 'b'.repeat(64)), 2102))).toEqual(['subject']);
    // The builder's own statement stands beside these and still counts by its key.
    expect((await verifyArtifact(registry, refOf(upper.made), [mesh.builder.publicKey])).isGood).toBe(true);
  });

  test('and one that is not there is said to be none', async () => {
    const { made } = await built();
    const gone = { repository: made.repository, reference: `sha256:${'0'.repeat(64)}` };
    await expect(verifyArtifact(registry, gone, [mesh.builder.publicKey])).rejects.toThrow('the registry holds no');
  });
});

test('an artifact is named by its repository and its digest or tag', () => {
  const digest = `sha256:${'0'.repeat(64)}`;
  expect(parseArtifactRef(`oci:tally/core@${digest}`)).toEqual({ repository: 'tally/core', reference: digest });
  expect(parseArtifactRef('tally/core:01ABC-lib')).toEqual({ repository: 'tally/core', reference: '01ABC-lib' });
  expect(() => parseArtifactRef('core')).toThrow('"core" names no artifact');
});

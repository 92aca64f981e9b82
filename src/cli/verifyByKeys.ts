/** `tally verify --key`: from the registry and what the caller holds, and nobody else. */
import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { verificationOf } from '../api/verification';
import { parseArtifactRef, verifyArtifact } from '../builder/verifyArtifact';
import { UsageError } from '../domain/errors';
import { createRegistryClient } from '../registry';
import type { VerifyAnswer } from '../schema/graphApi';

export async function verifyByKeys(artifact: string, given: readonly string[], registryUrl: string): Promise<VerifyAnswer> {
  const keys = given.map((text) => ({ builder: text.slice(0, 60), publicKey: publicKeyFrom(text) }));
  const registry = createRegistryClient({ url: registryUrl });
  const verified = verificationOf(
    await verifyArtifact(
      registry,
      parseArtifactRef(artifact),
      keys.map((key) => key.publicKey),
    ),
    keys,
  );
  return { isRight: verified.isRight, artifacts: [verified] };
}

/** Base64 of the SPKI form, as the messages have it. */
function publicKeyFrom(given: string): string {
  const text = (existsSync(given) ? readFileSync(given, 'utf8') : given).trim();
  try {
    const key = text.startsWith('-----') ? createPublicKey(text) : createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' });
    if (key.asymmetricKeyType === 'ed25519') return key.export({ format: 'der', type: 'spki' }).toString('base64');
  } catch {
    // Told below, the same for each way of not being a key.
  }
  throw new UsageError(`${given.slice(0, 80)} is no public key: give an ed25519 key in base64 or PEM, or a file that holds one`);
}

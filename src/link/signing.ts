/** Signed messages in the form of DSSE, by ed25519. Public keys are base64 of their SPKI form; private keys are PEM. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto';
import type { Envelope } from '../schema/messages';
import { VerificationError } from './errors';

export interface KeyPair {
  readonly publicKey: string;
  readonly privateKey: string;
}

export function generateKeyPair(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { publicKey: textOf(publicKey), privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString() };
}

export function publicKeyOf(privateKey: string): string {
  return signer(privateKey).publicKey;
}

export function sign(payloadType: string, payload: object, privateKey: string): Envelope {
  const body = Buffer.from(JSON.stringify(payload));
  const { key, publicKey } = signer(privateKey);
  const sig = signBytes(null, preAuthentication(payloadType, body), key);
  return { payloadType, payload: body.toString('base64'), signatures: [{ keyid: keyIdOf(publicKey), sig: sig.toString('base64') }] };
}

/**
 * @returns the payload, parsed, when one of the keys signed it as a message of the expected type.
 * @throws VerificationError with the reason otherwise.
 */
export function verify(envelope: Envelope, publicKeys: readonly string[], expectedType: string): unknown {
  if (envelope.payloadType !== expectedType) throw new VerificationError(`it is a ${envelope.payloadType} and not a ${expectedType}`);
  const body = Buffer.from(envelope.payload, 'base64');
  const bytes = preAuthentication(envelope.payloadType, body);
  const keys = publicKeys.map(keyObject);
  const isSigned = envelope.signatures.some(({ sig }) => keys.some((key) => verifyBytes(null, bytes, key, Buffer.from(sig, 'base64'))));
  if (!isSigned) {
    const given = envelope.signatures.map(({ keyid }) => keyid.slice(0, 12)).join(', ');
    throw new VerificationError(
      `none of its signatures (${given}) is by ${publicKeys.map((key) => keyIdOf(key).slice(0, 12)).join(' or ') || 'a key known here'}`,
    );
  }
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new VerificationError('it is signed and is not JSON');
  }
}

/** sha256 of the public key, in hex: a hint for people, never what is trusted. */
function keyIdOf(publicKey: string): string {
  return createHash('sha256').update(publicKey).digest('hex');
}

/** DSSE v1: what is signed names its type and lengths, so that nothing can be read as something else. */
function preAuthentication(payloadType: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(payloadType)} ${payloadType} ${body.length} `), body]);
}

function textOf(key: KeyObject): string {
  return key.export({ format: 'der', type: 'spki' }).toString('base64');
}

/** Reading a key from its text costs more than using it. */
const signer = remembering(2_000, (privateKey: string) => {
  const key = createPrivateKey(privateKey);
  return { key, publicKey: textOf(createPublicKey(key)) };
});

const keyObject = remembering(10_000, (publicKey: string): KeyObject => {
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // Told below, the same for each way of not being a key.
  }
  throw new VerificationError('the public key is not an ed25519 key in base64');
});

/** Keeps at most so many results; then it begins anew. */
function remembering<T>(most: number, make: (text: string) => T): (text: string) => T {
  const kept = new Map<string, T>();
  return (text) => {
    const found = kept.get(text);
    if (found !== undefined) return found;
    const made = make(text);
    if (kept.size >= most) kept.clear();
    kept.set(text, made);
    return made;
  };
}

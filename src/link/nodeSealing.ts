/**
 * What only one node may read: sealed to its X25519 key as HPKE (RFC 9180) does it, with HKDF-SHA256 and AES-256-GCM, and
 * bound to the mesh, the node, the credential and its version, so that nothing sealed can stand in for something else.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import type { CipherSuite } from '@hpke/core';
import { VerificationError } from './errors';
import { openWithMeshKey, sealWithMeshKey } from './sealing';
import type { KeyPair } from './signing';

export interface SealedAbout {
  readonly mesh: string;
  readonly node: string;
  /** `owner/name`. */
  readonly credential: string;
  readonly version: number;
}

const INFO = Buffer.from('tally node secret v1');
const FORM = 'v1';
const SECRET_BYTES = 32;

/** Public keys are base64 of their SPKI form, private keys PEM, as those that sign. */
export function generateSealKeyPair(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return { publicKey: textOf(publicKey), privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString() };
}

export function sealKeyOf(privateKey: string): string {
  return textOf(createPublicKey(createPrivateKey(privateKey)));
}

/** Another text each time. @throws VerificationError when it is no X25519 key. */
export async function sealToNode(sealKey: string, text: string, about: SealedAbout): Promise<string> {
  const kem = suite().kem;
  const recipientPublicKey = await kem.deserializePublicKey(rawPublicKey(sealKey));
  const { enc, ct } = await suite().seal({ recipientPublicKey, info: INFO }, Buffer.from(text), bound(about));
  return [FORM, Buffer.from(enc).toString('base64url'), Buffer.from(ct).toString('base64url')].join('.');
}

/** @throws VerificationError when it was sealed to another key, about something else, or changed since; it never holds the text. */
export async function openOnNode(privateKey: string, sealed: string, about: SealedAbout): Promise<string> {
  const [form, enc = '', ct = ''] = sealed.split('.');
  if (form !== FORM) throw new VerificationError(`${about.credential} is not sealed in the form ${FORM}`);
  const recipientKey = await suite().kem.deserializePrivateKey(Buffer.from(jwkOf(createPrivateKey(privateKey), 'd'), 'base64url'));
  try {
    const opened = await suite().open({ recipientKey, enc: Buffer.from(enc, 'base64url'), info: INFO }, Buffer.from(ct, 'base64url'), bound(about));
    return Buffer.from(opened).toString('utf8');
  } catch (error) {
    throw new VerificationError(`${about.credential} in version ${about.version} is not sealed to this node's key`, { cause: error });
  }
}

/** What the inventory needs of keys, which it never holds itself. */
export function createSealing(meshKey: Buffer) {
  return {
    make: () => randomBytes(SECRET_BYTES).toString('base64url'),
    keep: (text: string, subject: string) => sealWithMeshKey(meshKey, text, subject),
    open: (sealed: string, subject: string) => openWithMeshKey(meshKey, sealed, subject),
    sealToNode,
  };
}

function bound({ mesh, node, credential, version }: SealedAbout): Buffer {
  return Buffer.from(JSON.stringify([mesh, node, credential, version]));
}

let made: CipherSuite | null = null;

/** Loaded when something is sealed or opened: most starts of a host do neither. */
function suite(): CipherSuite {
  if (made !== null) return made;
  const hpke = require('@hpke/core') as typeof import('@hpke/core');
  made = new hpke.CipherSuite({ kem: new hpke.DhkemX25519HkdfSha256(), kdf: new hpke.HkdfSha256(), aead: new hpke.Aes256Gcm() });
  return made;
}

function rawPublicKey(sealKey: string): Buffer {
  try {
    const key = createPublicKey({ key: Buffer.from(sealKey, 'base64'), format: 'der', type: 'spki' });
    if (key.asymmetricKeyType === 'x25519') return Buffer.from(jwkOf(key, 'x'), 'base64url');
  } catch {
    // Told below, the same for each way of not being a key.
  }
  throw new VerificationError('the public key is not an X25519 key in base64');
}

function jwkOf(key: KeyObject, part: 'd' | 'x'): string {
  return key.export({ format: 'jwk' })[part] ?? '';
}

function textOf(key: KeyObject): string {
  return key.export({ format: 'der', type: 'spki' }).toString('base64');
}

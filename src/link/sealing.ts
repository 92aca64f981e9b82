/** The two key files of the control plane, and what the mesh key seals. Each control process has the same files. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { UsageError } from '../domain/errors';
import { generateKeyPair, type KeyPair, publicKeyOf } from './signing';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const IV_BYTES = 12;

/** @param about binds the sealed text to what it is about (a table and a name), so that it cannot be moved elsewhere. */
export function sealWithMeshKey(meshKey: Buffer, text: string, about: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, meshKey, iv).setAAD(Buffer.from(about));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return ['v1', iv, cipher.getAuthTag(), sealed].map((part) => (typeof part === 'string' ? part : part.toString('base64url'))).join('.');
}

/** @throws UsageError when this is not the key that sealed it, or it was sealed about something else. */
export function openWithMeshKey(meshKey: Buffer, sealed: string, about: string): string {
  const [version, iv, tag, text] = sealed.split('.');
  if (version !== 'v1' || iv === undefined || tag === undefined || text === undefined)
    throw new UsageError(`what is stored sealed of ${about} is not in the form v1`);
  try {
    const decipher = createDecipheriv(CIPHER, meshKey, Buffer.from(iv, 'base64url'), { authTagLength: 16 })
      .setAAD(Buffer.from(about))
      .setAuthTag(Buffer.from(tag, 'base64url'));
    return Buffer.concat([decipher.update(Buffer.from(text, 'base64url')), decipher.final()]).toString('utf8');
  } catch (error) {
    throw new UsageError(`this mesh.key does not open what is stored sealed of ${about}: put the mesh's own key file back`, { cause: error });
  }
}

/** `mesh.key` of the state directory; made where there is none. */
export function keptMeshKey(home: string): Buffer {
  const key = Buffer.from(
    kept(path.join(home, 'mesh.key'), () => randomBytes(KEY_BYTES).toString('base64')),
    'base64',
  );
  if (key.length !== KEY_BYTES)
    throw new UsageError(`${path.join(home, 'mesh.key')} does not hold ${KEY_BYTES} bytes in base64: put the mesh's own key file back`);
  return key;
}

/** `signing.key` of the state directory, by which declarations are signed; made where there is none. */
export function keptSigningKey(home: string): KeyPair {
  const privateKey = kept(path.join(home, 'signing.key'), () => generateKeyPair().privateKey);
  return { privateKey, publicKey: publicKeyOf(privateKey) };
}

/** Whole or not there: two processes that start at once agree on the first one's. */
function kept(file: string, make: () => string): string {
  try {
    return readPrivate(file);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  writeFileSync(draft, make(), { mode: 0o600, flag: 'wx', flush: true });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readPrivate(file);
}

function readPrivate(file: string): string {
  const text = readFileSync(file, 'utf8');
  if ((statSync(file).mode & 0o077) !== 0) throw new UsageError(`${file} can be read by others: chmod 600 ${file}`);
  return text;
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
}

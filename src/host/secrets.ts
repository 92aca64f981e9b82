/**
 * What is sealed to this node: opened here and nowhere else, kept in memory alone, and filled into files that are their
 * owner's alone. The journal and the accepted declaration hold it as it came, sealed.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VerificationError } from '../link/errors';
import { generateSealKeyPair, openOnNode, sealKeyOf } from '../link/nodeSealing';
import type { Declaration, SealedSecret } from '../schema/declaration';
import { ResourceFailed } from './failures';
import { writeWhole } from './journal';
import { codeOf, type Root } from './root';

export interface Secrets {
  /** Before a pass: what is sealed in it and what is left of earlier ones, and for which mesh and node. */
  know(declaration: Declaration, left: readonly SealedSecret[]): void;
  /** `${secret.NAME}` and what every content may hold, in one pass: no secret names another. @throws ResourceFailed. */
  fill(content: string, secrets: Readonly<Record<string, SealedSecret>>): Promise<string>;
  /** A text for a report or a log, without any secret that this node holds or held since it started. */
  scrub(text: string): Promise<string>;
}

/** `$${` is there so that it is passed over. */
export const REFERENCES = /\$\$\{|\$\{root\}|\$\{secret\.([^}\n]*)\}/g;

/** Whatever is dropped is opened again. */
const OPENED_MOST = 1_000;

export function openSecrets(state: string, root: Root): Secrets {
  let about = { mesh: '', node: '' };
  let known: readonly SealedSecret[] = [];
  const opened = new Map<string, string>();

  async function open({ credential, version, sealed }: SealedSecret): Promise<string> {
    const key = JSON.stringify([about.mesh, about.node, credential, version, sealed]);
    const found = opened.get(key);
    if (found !== undefined) return found;
    try {
      const text = await openOnNode(keptSealKey(state).privateKey, sealed, { ...about, credential, version });
      if (opened.size >= OPENED_MOST) opened.clear();
      opened.set(key, text);
      return text;
    } catch (error) {
      if (!(error instanceof VerificationError)) throw error;
      throw new ResourceFailed(`the secret ${error.message}: tally node show ${about.node} says which key the mesh seals to`);
    }
  }

  return {
    know({ mesh, node, resources }, left) {
      about = { mesh, node };
      known = [...resources.flatMap(({ shape, spec }) => (shape === 'file' ? Object.values(spec.secrets ?? {}) : [])), ...left];
    },
    async fill(content, secrets) {
      const texts = new Map<string, string>();
      for (const [name, secret] of Object.entries(secrets)) texts.set(name, await open(secret));
      return content.replace(REFERENCES, (found, name?: string) => (name === undefined ? root.fill(found) : (texts.get(name) ?? found)));
    },
    async scrub(text) {
      // One that does not open here cannot stand in a text either.
      for (const secret of known) await open(secret).catch(() => undefined);
      return [...opened.values()].reduce((scrubbed, secret) => (secret === '' ? scrubbed : scrubbed.replaceAll(secret, '(a secret)')), text);
    },
  };
}

interface SealKey {
  readonly privateKey: string;
  readonly publicKey: string;
}

/** Made when it is first asked for; it never leaves the state directory. Only the process that has the directory calls this. */
export function keptSealKey(state: string): SealKey {
  const file = join(state, 'seal.key');
  try {
    const privateKey = readFileSync(file, 'utf8');
    return { privateKey, publicKey: sealKeyOf(privateKey) };
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  const key = generateSealKeyPair();
  writeWhole(file, key.privateKey);
  return key;
}

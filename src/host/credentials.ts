/** What a node needs to be part of its mesh: its credential file, and the key that it made for itself. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../domain/errors';
import { generateKeyPair, type KeyPair, publicKeyOf } from '../link';
import { name } from '../schema/primitives';
import { writeWhole } from './journal';
import { codeOf } from './root';

const credentials = z.object({
  mesh: name,
  node: name,
  amqpUrl: z.url({ protocol: /^amqps?$/ }),
  registryUrl: z.url({ protocol: /^https?$/ }),
  meshPublicKey: z.string().min(1),
});

export type Credentials = z.infer<typeof credentials>;

/** @throws UsageError that names the key which is wrong, and never its value. */
export function readCredentials(file: string): Credentials {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`cannot read the credential file ${file} (${codeOf(error) || 'it is not JSON'}): "tally node add" writes it`);
  }
  const read = credentials.safeParse(content);
  if (read.success) return read.data;
  throw new UsageError(
    `the credential file ${file} is wrong at ${read.error.issues[0]?.path.join('.') || 'its top'}: "tally node add" writes it anew`,
  );
}

/** Made at the first start; it never leaves the state directory. Only the process that has the directory calls this. */
export function keptNodeKey(state: string): KeyPair {
  const file = join(state, 'node.key');
  try {
    const privateKey = readFileSync(file, 'utf8');
    return { privateKey, publicKey: publicKeyOf(privateKey) };
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  const key = generateKeyPair();
  writeWhole(file, key.privateKey);
  return key;
}

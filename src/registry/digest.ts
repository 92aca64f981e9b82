import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { UsageError } from '../domain/errors';

const DIGEST = /^sha256:[0-9a-f]{64}$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;

export function sha256(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

/** Digest and size (bytes) of a file, read as a stream. Errors: those of the file system. */
export async function describeFile(path: string): Promise<{ digest: string; size: number }> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 18 })) {
    hash.update(chunk as Buffer);
    size += (chunk as Buffer).length;
  }
  return { digest: `sha256:${hash.digest('hex')}`, size };
}

export function isDigest(text: string): boolean {
  return DIGEST.test(text);
}

// Names become parts of a URL, so their form is checked before they do.
export function checkRepository(repository: string): void {
  if (repository.length > 255 || !REPOSITORY.test(repository)) {
    throw new UsageError(`"${repository}" cannot name a repository of a registry: use lower-case letters, digits, ".", "_", "-" and "/"`);
  }
}

export function checkDigest(digest: string): void {
  if (!isDigest(digest)) throw new UsageError(`"${digest}" is not a digest: it should read sha256: and 64 hex digits`);
}

export function checkReference(reference: string): void {
  if (!isDigest(reference) && !TAG.test(reference)) throw new UsageError(`"${reference}" is neither a tag nor a sha256 digest`);
}

import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** The name of a value by its content: sha256 of its canonical JSON (RFC 8785), the same however its keys are ordered. */
export function canonicalDigest(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('a value without a JSON form has no digest');
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

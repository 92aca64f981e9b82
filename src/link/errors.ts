import { EnvironmentError } from '../domain/errors';

/** The broker took the message and had no queue for it: it came back, which counts as unconfirmed. */
export class UnroutableError extends EnvironmentError {}

/** A signed message that does not hold: not ours, not theirs, or not what it should be about. */
export class VerificationError extends Error {
  override readonly name = 'VerificationError';
}

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A refused connection to several addresses is an AggregateError without words of its own.
  if (error.message === '' && 'code' in error) return String(error.code);
  return error.message.split('\n')[0] ?? '';
}

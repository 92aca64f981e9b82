/**
 * Two kinds of trouble that are told apart where they arise, never by matching a message later.
 * What is neither is a defect of Tally itself.
 */

/** The surroundings failed: network, disk, broker, registry, git. Never a verdict; tried again. */
export class EnvironmentError extends Error {
  readonly kind = 'environment';
  override readonly name = 'EnvironmentError';
}

/** The person or machine that asked got something wrong. One line: what, where, what to do. */
export class UsageError extends Error {
  readonly kind = 'usage';
  override readonly name = 'UsageError';
}

/** What a build is of: its commit and the digests of what it builds on. Two builds with the same closure are tries of one thing. */
export interface Closure {
  readonly commit: string;
  readonly inputs: ReadonlyArray<{ readonly module: string; readonly artifact: string; readonly digest: string }>;
}

/** @param digest sha256 of the canonical JSON (RFC 8785) of a value. */
export function closureOf(closure: Closure, digest: (value: unknown) => string): string {
  return digest({ commit: closure.commit, inputs: closure.inputs });
}

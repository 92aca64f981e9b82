/** What a build is of: its commit and the digests of what it builds on. Two builds with the same closure are tries of one thing. */
export interface Closure {
  readonly commit: string;
  readonly inputs: ReadonlyArray<{ readonly module: string; readonly artifact: string; readonly digest: string }>;
}

/** However the inputs are ordered, and whatever else is said of them. @param digest sha256 of the canonical JSON (RFC 8785) of a value. */
export function closureOf({ commit, inputs }: Closure, digest: (value: unknown) => string): string {
  const named = inputs.map((input) => ({ module: input.module, artifact: input.artifact, digest: input.digest }));
  return digest({ commit, inputs: named.sort((a, b) => compare(a.module, b.module) || compare(a.artifact, b.artifact)) });
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

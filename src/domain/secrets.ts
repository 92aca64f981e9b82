/** What the control plane can do with a secret: make one, seal it for the store, and seal it to the one node that may open it. Types only. */

export interface SecretSealing {
  /** A new secret, as text that needs no quoting. */
  make(): string;
  /** @param about binds the sealed text to what it is about, so that it cannot be moved elsewhere. */
  toStore(text: string, about: string): string;
  fromStore(sealed: string, about: string): string;
  /** @param sealKey base64 of the node's X25519 public key. */
  toNode(sealKey: string, text: string, about: string): string;
}

/** One sealed copy, as a declaration carries it beside the content that names it. */
export interface SealedSecret {
  readonly version: number;
  readonly sealed: string;
}

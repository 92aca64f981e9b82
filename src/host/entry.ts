/** What this host did for one resource, as its journal keeps it. `memo` is the shape's own, and all that `remove` gets. */
export interface Entry<Memo = unknown> {
  /** The shape and the target: the same for one thing on the machine, whatever module names it. */
  readonly key: string;
  readonly shape: string;
  readonly module: string;
  readonly id: string;
  /** Place in the declaration that it was last applied from. */
  readonly order: number;
  /** Of the act that last changed it; grows over all acts of this host. */
  readonly change: number;
  /** Of the spec that was read back as held; null before the first time. */
  readonly held: string | null;
  /** An act was begun and its outcome not read back yet. */
  readonly isPending: boolean;
  readonly memo: Memo;
}

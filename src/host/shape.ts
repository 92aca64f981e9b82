/** What the engine and the shapes say to one another. A shape is three verbs; the engine knows no shape. */
import type { Artifacts } from './artifacts';
import type { Root } from './root';
import type { Secrets } from './secrets';
import type { ServiceRunner } from './services';

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

export interface HostContext {
  readonly root: Root;
  readonly artifacts: Artifacts;
  readonly secrets: Secrets;
  readonly services: ServiceRunner;
  /** Directory for what was there before and for unpacked trees. */
  readonly state: string;
  readonly settleMs: number;
  /** Makes what is missing of a real path, and journals that it is this host's. */
  makeDirectories(path: string): void;
  hasMade(path: string): boolean;
}

export interface Task<Spec, Memo> {
  readonly spec: Spec;
  /** Digest of the spec as it stands, root included. */
  readonly print: string;
  readonly entry: Entry<Memo> | null;
  /** The act that last changed an earlier resource of the same module; 0: none ever did. */
  readonly earlier: number;
  /** Aborted when a newer declaration waits: whatever is waited for is not worth it any more. */
  readonly signal: AbortSignal;
  /** Journals what is about to be done, synced; before the act. @returns the number of this act. */
  intend(memo: Memo): number;
}

export type Reading<Memo> =
  /** The entry's own memo, unless there is more to say: what makes the next reading cheap. */
  { readonly holds: true; readonly memo: Memo } | { readonly holds: false; readonly why: string };

export interface Shape<Spec, Memo> {
  /** The target, normalised. */
  target(spec: Spec, module: string): string;
  /** What is so, from the machine. Changes nothing. */
  read(task: Task<Spec, Memo>, host: HostContext): Promise<Reading<Memo>>;
  /** Makes it so, or throws; safe to do again after a kill at any moment. */
  apply(task: Task<Spec, Memo>, host: HostContext): Promise<void>;
  /** Takes away what this host made and puts back what was there before; safe to do again. The signal is that of a task. */
  remove(memo: Memo, host: HostContext, signal: AbortSignal): Promise<void>;
}

/** The resource cannot be brought about; the message is one line for whoever reads the report. */
export class ResourceFailed extends Error {
  override readonly name = 'ResourceFailed';
}

/** A newer declaration waits. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

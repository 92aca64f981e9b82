/** What the engine and the shapes say to one another. A shape is three verbs; the engine knows no shape. */
import type { Artifacts } from './artifacts';
import type { Entry } from './entry';
import type { Root } from './root';
import type { ServiceRunner } from './runner';
import type { Secrets } from './secrets';

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

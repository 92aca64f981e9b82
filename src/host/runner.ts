/** What the host wants of whatever runs its services. */

export interface RunSpec {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Path of more of it, read at each start; null: none. */
  readonly environmentFile: string | null;
  readonly directory: string;
  readonly stopWithinMs: number;
}

/** What a running service was started from. */
export interface StartedFrom {
  readonly print: string;
  /** Number of the act that started it: what changed later it has not seen. */
  readonly change: number;
}

export interface RunningService extends StartedFrom {
  readonly pid: number;
  /** When its process began, in ticks since boot. */
  readonly start: string;
}

export interface LastWords {
  /** null while it runs, and before it first ended. */
  readonly status: number | null;
  /** The last line that it wrote; empty where there is none. */
  readonly line: string;
}

export interface ServiceRunner {
  /** null: it does not run, or nobody would start it again if it ended. */
  find(name: string): Promise<RunningService | null>;
  /** Ends whatever runs of it, then starts it; it is started again whenever it ends. */
  start(spec: RunSpec, from: StartedFrom): Promise<void>;
  /** Ends it with all that it started, and forgets it. */
  stop(name: string): Promise<void>;
  /** For a report. */
  lastWords(name: string): Promise<LastWords>;
}

/** What the workflows and those who call them agree on: names, and plain JSON that passes between them. */
import type { Iso, Next, Situation, Verdict } from '../src/domain/facts';

export const MODULE_WORKFLOW = 'moduleWorkflow';
export const NUDGE = 'nudge';

/** What an operator may ask of a module; each is an update with a validator. */
export const VERBS = ['declare', 'rebuild', 'hold', 'release', 'rollback', 'cancel'] as const;
export type Verb = (typeof VERBS)[number];

export interface Ask {
  /** Unique for this intent; asking twice with the same id is asking once. */
  readonly id: string;
  readonly who: string;
  readonly why: string;
  /** A build id; needed by rollback, allowed by declare and cancel. */
  readonly buildId: string | null;
  /** Of a rebuild: build it twice and say what differs. */
  readonly check?: boolean | undefined;
}

/** The little of a comparison that returns into history. */
export interface Look {
  readonly next: Next['kind'];
  /** "4f2c1a9" of what is inspected, built or declared; "core to settle" of what is waited for. */
  readonly about: string | null;
  readonly requestId: string | null;
  readonly buildId: string | null;
  readonly cancel: readonly string[];
  readonly line: string;
  readonly reason: string;
  readonly situation: Situation;
  readonly verdict: Verdict;
  readonly since: Iso | null;
  readonly until: Iso | null;
  readonly outstanding: number;
  readonly placements: number;
  readonly isStuck: boolean;
  readonly atRest: boolean;
}

export interface ModuleInput {
  readonly module: string;
  /** Where the repository and the board are, for the memo. */
  readonly links: { readonly repository: string; readonly board: string };
  /** The look with which the run before this one ended; null at the very start. */
  readonly resumed: Look | null;
}

/** What a turn came to: the comparison it ended with, recorded; null: the module is no more. */
export interface Advanced {
  readonly look: Look | null;
  /** Requests that are not wanted any more. */
  readonly cancelled: readonly string[];
  /** Something was asked of a builder, or declared. */
  readonly hasActed: boolean;
}

/** Local activities: short, from the facts, no network but the store. */
export interface Decisions {
  /** Compares, makes (or adopts) the request or declares what the comparison chose, and compares again, until there is something to wait for. */
  advance(module: string): Promise<Advanced>;
  /** Writes the intent down and carries it out in the store; its answer is one line. A refusal is an ApplicationFailure. */
  carryOut(module: string, verb: Verb, ask: Ask): Promise<string>;
}

/** Completed from outside, by the answer that a builder sent over the broker. */
export interface Asked {
  inspect(requestId: string): Promise<string>;
  build(requestId: string): Promise<string>;
}

export interface Passes {
  /** Reads the refs that are due; how many were read. */
  readSources(): Promise<number>;
  /** Nudges the modules whose facts moved or whose time is due; how many. */
  sweep(): Promise<number>;
  /** Compares every module anew; how many the versions had missed. */
  fullPass(): Promise<number>;
}

export const SEARCH = {
  verdict: 'TallyVerdict',
  situation: 'TallySituation',
  stuck: 'TallyStuck',
  outstanding: 'TallyOutstanding',
} as const;

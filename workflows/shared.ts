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
}

/** The little of a comparison that returns into history. */
export interface Look {
  readonly next: Next['kind'];
  /** "4f2c1a9" of what is inspected, built or declared. */
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

/** What acting did, and the comparison after it; no look: the module is no more. */
export interface Acted {
  /** False when the facts had moved since the comparison that asked for it. */
  readonly acted: boolean;
  readonly look: Look | null;
}

/** Local activities: short, from the facts, no network but the store. */
export interface Decisions {
  /** Compares from one snapshot and records what it found; null when the module is no more. */
  look(module: string): Promise<Look | null>;
  /** Makes (or adopts) the request that a comparison now asks for. */
  openRequest(module: string): Promise<Acted>;
  /** Declares what a comparison now chooses. */
  declareEffective(module: string): Promise<Acted>;
  cancelRequests(module: string, ids: readonly string[], reason: string): Promise<Acted>;
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

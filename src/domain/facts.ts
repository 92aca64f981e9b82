/**
 * The facts of one module, as one consistent snapshot of the inventory, and what a comparison of them says.
 * Plain JSON throughout, because both travel through a workflow: times are ISO 8601 strings in UTC.
 */

export type Iso = string;

/** A commit as git names it: 40 (or 64) lower-case hexadecimal digits. */
export type Commit = string;

export type Verdict = 'outstanding' | 'fit' | 'failed';

export type DeclarePolicy = 'auto' | 'ask';

export interface SourceFacts {
  readonly repository: string;
  readonly ref: string;
  /** The head of the tracked ref as git last said it; null before the first reading. */
  readonly head: { readonly commit: Commit; readonly since: Iso } | null;
  /** Why the last reading gave no head: the repository could not be read, or the ref is not there. */
  readonly trouble: { readonly kind: 'unreadable' | 'absent'; readonly reason: string; readonly since: Iso } | null;
}

/** What waits in a queue or runs on a builder: an inspection or a build. */
export interface RequestFacts {
  readonly id: string;
  readonly kind: 'inspect' | 'build';
  readonly commit: Commit;
  /** What a build was asked with; null for an inspection. */
  readonly closure: string | null;
  readonly state: 'requested' | 'published' | 'taken';
  readonly attempt: number;
  readonly requestedAt: Iso;
  readonly takenBy: string | null;
  readonly takenAt: Iso | null;
  /** What the builder is at: checkout, fetch, run, test, pack, push. */
  readonly step: string | null;
  /** The last environmental reason and since when it has been in the way; null when nothing is. */
  readonly trouble: { readonly reason: string; readonly since: Iso } | null;
  /** Attempts that were lost or ended for environmental reasons, one after the other. */
  readonly lostAttempts: number;
  /** Not to be tried again before this time. */
  readonly retryAt: Iso | null;
  /** Three attempts in a row lost or ended by the environment while builders ended other work. */
  readonly isSuspect: boolean;
  /** Already told to stop: it may still run for a moment, and nothing waits for it. */
  readonly isStopping: boolean;
}

export interface InspectionFacts {
  readonly commit: Commit;
  readonly outcome: 'valid' | 'invalid';
  readonly answeredAt: Iso;
  /** One line a problem: file, line, key, what and what to do. */
  readonly problems: readonly string[];
  readonly declare: DeclarePolicy | null;
  readonly platform: string;
  readonly supersede: 'finish' | 'cancel';
}

export interface BuildFacts {
  readonly id: string;
  readonly commit: Commit;
  readonly closure: string;
  /** 1 for the first build of a closure, 2 for the one an operator asked for after it, and so on. */
  readonly tryNumber: number;
  readonly verdict: Verdict;
  readonly reason: string | null;
  readonly answeredAt: Iso | null;
}

export interface PlacementFacts {
  readonly node: string;
  /** The build declared here; null when the module is assigned and nothing has been declared yet. */
  readonly build: { readonly id: string; readonly commit: Commit } | null;
  /** Another build than the effective one, of the same commit and with the same artifacts: declaring that one changes nothing here. */
  readonly isSame: boolean;
  /** What the node last reported as held of this module. */
  readonly applied: { readonly buildId: string; readonly commit: Commit; readonly at: Iso } | null;
  /** True when what is declared was worked out, sent, and read back by the node as held. */
  readonly isApplied: boolean;
  /** Since when the node owes this module something; null when it owes nothing. */
  readonly outstandingSince: Iso | null;
  /** Why: not yet sent, not yet received, a failing resource, not worked out. */
  readonly waitingOn: 'send' | 'node' | 'apply' | 'workout' | null;
  readonly detail: string | null;
  /** The run of reports that failed on exactly the same resource ids. */
  readonly failing: { readonly resources: readonly string[]; readonly count: number; readonly since: Iso; readonly message: string } | null;
  /** Missed three beats: a word, never a verdict. */
  readonly awaySince: Iso | null;
  /** Why the effective build is not declared here: it would take what another has or lacks what it requires, or something is made first. */
  readonly blocked: { readonly reason: string; readonly since: Iso; readonly needsPerson: boolean } | null;
}

/** An artifact of another module that a build of the head would use now. */
export interface InputFacts {
  readonly module: string;
  readonly artifact: string;
  readonly digest: string;
  /** Only tests reach it: it makes stale, and nothing waits for it to settle. */
  readonly isTest: boolean;
}

/** A module that this one builds on, at whatever distance, and that is about to have another artifact. */
export interface SettlingInput {
  readonly module: string;
  /** Why it has not settled: 'inspecting', 'building' or 'waiting' for its own inputs. */
  readonly state: 'inspecting' | 'building' | 'waiting';
  /** The builder that has taken its request; null while none has. */
  readonly takenBy: string | null;
  readonly since: Iso;
  /** When it last got on: a head seen, a build asked for, taken, beat or a step done. */
  readonly progressAt: Iso;
  /** The modules from this one to it, both included: `why` shows them. */
  readonly path: readonly string[];
}

/** An import of code that no module exports, while there are modules that may: their code has not been read yet. */
export interface OpenImport {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  /** One of those whose code may export it: whose head moved last, else one that was never inspected. */
  readonly module: string;
  readonly hasOthers: boolean;
  /** When this one was added or its head moved, or any inspection last got on. */
  readonly progressAt: Iso;
}

/** A module that this one builds on and that has no fit build yet which carries what is imported. */
export interface MissingInput {
  readonly module: string;
  /** One clause: 'core has had no fit build yet', 'core at 4f2c1a9 makes no artifact core-go', 'core at 4f2c1a9 does not export example.org/core'. */
  readonly because: string;
  readonly since: Iso;
  /** It will not come by itself: its head failed or is invalid. */
  readonly needsPerson: boolean;
}

/** What the edges in force say of the module. All lists are empty and all else null while its edges are not known. */
export interface GraphFacts {
  /** By module and artifact, each once, transitive. */
  readonly inputs: readonly InputFacts[];
  /** Those of the newest answered build of the head's commit, to name what moved; where that failed with the inputs of now, those of the effective build. */
  readonly builtInputs: readonly InputFacts[];
  /** Since when the head's closure has had no verdict, whatever moved since; null when it has one. */
  readonly staleSince: Iso | null;
  readonly settling: readonly SettlingInput[];
  readonly missing: readonly MissingInput[];
  /** null: of each import it is known whether it is an edge, or nobody is left who may export it. */
  readonly openImport: OpenImport | null;
  /** Through build edges back to itself: a → b → a, first and last the same. */
  readonly cycle: readonly string[] | null;
  /** Modules that each wait for what the other has to be fit for first; first and last the same. */
  readonly bootstrap: readonly string[] | null;
  /** Names that this module exports and another one exported before it. */
  readonly conflicts: ReadonlyArray<{ readonly name: string; readonly module: string }>;
  /** Files that could not be parsed, as file:line reason: the edges of before stay in force. */
  readonly unparsed: readonly string[];
}

export interface Facts {
  readonly module: string;
  readonly now: Iso;
  /** Compared against to know whether anything changed since. */
  readonly version: number;
  readonly source: SourceFacts;
  /** The inspection of the head; null while it has not been answered. */
  readonly inspection: InspectionFacts | null;
  /** Open requests of this module, oldest first. */
  readonly requests: readonly RequestFacts[];
  /** The closure that a build of the head would have now; null when the head is not inspected or is invalid. */
  readonly closure: string | null;
  /** The newest answered build of that closure. */
  readonly headBuild: BuildFacts | null;
  /** An operator asked for another try of the head's closure that has not been opened yet. */
  readonly again: { readonly by: string; readonly at: Iso } | null;
  readonly effective: BuildFacts | null;
  readonly graph: GraphFacts;
  /** What the manifest at the effective build's commit says; null where it is silent. */
  readonly effectiveDeclare: DeclarePolicy | null;
  readonly placements: readonly PlacementFacts[];
  readonly meshDeclare: DeclarePolicy;
  /** An operator said: declare this build (module policy ask). */
  readonly approved: { readonly buildId: string; readonly by: string } | null;
  readonly hold: { readonly by: string; readonly why: string; readonly at: Iso; readonly buildId: string | null } | null;
  /** When a builder of the needed platform (or any builder, for an inspection) last beat. */
  readonly builderSeenAt: Iso | null;
}

export type Situation =
  | 'in step'
  | 'held'
  | 'settling'
  | 'building'
  | 'waiting'
  | 'declaring'
  | 'applying'
  | 'asking'
  | 'invalid'
  | 'cycle'
  | 'failed'
  | 'unreadable'
  | 'suspect'
  | 'stuck';

export type Next =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'inspect'; readonly commit: Commit; readonly requestId: string | null }
  | { readonly kind: 'build'; readonly commit: Commit; readonly closure: string; readonly requestId: string | null }
  /** Something else has to happen first; `on` says what. */
  | { readonly kind: 'wait'; readonly on: string }
  | { readonly kind: 'judge'; readonly buildId: string }
  | { readonly kind: 'declare'; readonly buildId: string; readonly commit: Commit; readonly nodes: readonly string[] }
  | { readonly kind: 'ask'; readonly buildId: string; readonly commit: Commit; readonly nodes: number }
  | { readonly kind: 'track'; readonly nodes: number };

export interface PlacementCounts {
  readonly placements: number;
  readonly declared: number;
  readonly applied: number;
  readonly outstanding: number;
  readonly stuck: number;
}

export interface Comparison {
  readonly module: string;
  readonly version: number;
  readonly next: Next;
  /** Requests that this comparison no longer wants: superseded and not started, or told to stop. */
  readonly cancel: readonly string[];
  readonly situation: Situation;
  readonly verdict: Verdict;
  /** The result line without the module's name. Times in it are ISO 8601 to the minute (2026-11-29T14:02Z); `renderTimes` makes them short. */
  readonly line: string;
  /** Why `next` is what it is, in one sentence. */
  readonly reason: string;
  /** Since when this situation holds what it waits for. */
  readonly since: Iso | null;
  /** Look again at this time at the latest even if nothing changes; null: only the slow fallback. */
  readonly until: Iso | null;
  readonly needsPerson: boolean;
  readonly inStep: boolean;
  readonly counts: PlacementCounts;
  readonly stuckOn: readonly string[];
  /** The module that the line names as not inspected yet, of several. */
  readonly unread: string | null;
}

/** What a comparison decides, apart from what it counts. */
export type Decision = Pick<Comparison, 'next' | 'situation' | 'reason' | 'since' | 'needsPerson'>;

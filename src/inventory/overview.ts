/** What status, board and metrics read: set-based, one statement a family. Times are ISO 8601 in UTC. */
import type { Iso, Next, Situation, Verdict } from '../domain/facts';
import type { Times } from '../domain/times';
import type { Db } from './db';

export interface ModuleStatus {
  readonly module: string;
  readonly repository: string;
  readonly ref: string;
  readonly head: string | null;
  readonly situation: Situation | null;
  readonly verdict: Verdict;
  readonly next: Next['kind'] | null;
  readonly line: string;
  readonly reason: string;
  readonly since: Iso | null;
  readonly comparedAt: Iso | null;
  readonly needsPerson: boolean;
  readonly inStep: boolean;
  readonly isHeld: boolean;
  readonly hasWebhook: boolean;
  readonly counts: { readonly placements: number; readonly declared: number; readonly applied: number; readonly outstanding: number; readonly stuck: number };
}
export interface StuckStatus {
  readonly module: string;
  readonly node: string;
  readonly resources: readonly string[];
  readonly count: number;
  readonly since: Iso;
  readonly message: string;
}
export interface NodeStatus {
  readonly node: string;
  readonly site: string;
  readonly presence: 'never seen' | 'up' | 'away';
  readonly lastBeatAt: Iso | null;
  /** `sending`: derived anew or not yet confirmed, and it was told before. */
  readonly sending: 'up to date' | 'out of date' | 'never told' | 'not worked out' | 'nothing to tell';
  readonly notWorkedOut: { readonly reason: string; readonly since: Iso } | null;
  readonly sendTrouble: { readonly reason: string; readonly since: Iso } | null;
  readonly refused: { readonly reason: string; readonly since: Iso } | null;
  /** Another public key than the one that was taken first. */
  readonly keyRefused: string | null;
  readonly placements: number;
  readonly applied: number;
}
export interface BuilderStatus {
  readonly builder: string;
  readonly platforms: readonly string[];
  readonly presence: 'up' | 'away';
  readonly lastBeatAt: Iso;
  readonly busy: ReadonlyArray<{ readonly request: string; readonly module: string | null; readonly step: string; readonly since: Iso }>;
}
export interface MeshHealth {
  /** The oldest comparison of a module whose facts have moved since; null: none is owed. */
  readonly oldestOwedSince: Iso | null;
  readonly oldestOwedModule: string | null;
  readonly uncompared: number;
  readonly deadLetters: number;
  readonly newestDeadLetter: { readonly queue: string; readonly reason: string; readonly at: Iso } | null;
}
export declare function moduleStatuses(db: Db, modules?: readonly string[]): Promise<ModuleStatus[]>;
export declare function stuckStatuses(db: Db, now: Date, times: Times): Promise<StuckStatus[]>;
export declare function nodeStatuses(db: Db, now: Date, times: Times, nodes?: readonly string[]): Promise<NodeStatus[]>;
export declare function builderStatuses(db: Db, now: Date, times: Times): Promise<BuilderStatus[]>;
export declare function meshHealth(db: Db): Promise<MeshHealth>;

/** Per (node, situation) what `plan` needs beyond the module rows: the nodes that a declare would name. */
export interface PlanRow {
  readonly module: string;
  readonly next: Next['kind'];
  readonly commit: string | null;
  readonly reason: string;
  /** Nodes whose placement does not name the effective build. */
  readonly undeclared: readonly string[];
  /** Nodes that have not applied what is declared. */
  readonly outstanding: readonly string[];
}
/** Modules whose next is not nothing, by name. */
export declare function planRows(db: Db): Promise<PlanRow[]>;

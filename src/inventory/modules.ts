import type { Comparison, Facts } from '../domain/facts';
import type { Times } from '../domain/times';
import type { Db } from './db';

export interface ModuleRef {
  readonly name: string;
  readonly repository: string;
}
export interface ChangedModule extends ModuleRef {
  readonly version: number;
}
/** UsageError when the name is taken. */
export declare function addModule(db: Db, module: { readonly name: string; readonly repository: string; readonly ref: string }): Promise<void>;
/** With everything that is known of it; its nodes are told without it. UsageError when there is none. */
export declare function removeModule(db: Db, name: string, intent: { readonly who: string; readonly why: string }): Promise<void>;
export declare function listModules(db: Db): Promise<Array<ModuleRef & { readonly ref: string; readonly hasWebhook: boolean }>>;
/** One statement, so one snapshot; null when there is no such module. */
export declare function readFacts(db: Db, module: string, now: Date, times: Times): Promise<Facts | null>;
/** The same for many modules at once, for the full pass. */
export declare function readManyFacts(db: Db, modules: readonly string[], now: Date, times: Times): Promise<Facts[]>;
/** Keeps what a comparison found. One of older facts than the last recorded is dropped. */
export declare function recordComparison(db: Db, comparison: Comparison, now?: Date): Promise<void>;
/** Modules whose facts moved since they were compared and since they were nudged: for the pass a second. */
export declare function changedModules(db: Db, limit: number): Promise<ChangedModule[]>;
export declare function markNudged(db: Db, modules: ReadonlyArray<{ readonly name: string; readonly version: number }>): Promise<void>;
/** Modules whose facts are not the ones last compared, nudged or not, or whose time is due: for the sweep. */
export declare function sweepModules(db: Db, limit: number, now: Date): Promise<ChangedModule[]>;
export declare function countChanged(db: Db): Promise<number>;

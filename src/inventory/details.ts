/** Everything about one module or one node, for `show`, `why` and the board. */
import type { DeclarePolicy, Iso, Verdict } from '../domain/facts';
import type { Db } from './db';

export interface PlacementDetail {
  readonly module: string;
  readonly node: string;
  readonly declared: { readonly build: string; readonly commit: string } | null;
  readonly applied: { readonly build: string; readonly commit: string | null; readonly at: Iso | null } | null;
  readonly isApplied: boolean;
  readonly outstandingSince: Iso | null;
  readonly failing: { readonly resources: readonly string[]; readonly count: number; readonly since: Iso; readonly message: string } | null;
}
export interface BuildDetail {
  readonly build: string;
  readonly commit: string;
  readonly try: number;
  readonly state: 'requested' | 'published' | 'taken' | 'answered' | 'cancelled';
  readonly verdict: Verdict;
  readonly isEffective: boolean;
  readonly reason: string | null;
  readonly step: string | null;
  readonly requestedAt: Iso;
  readonly answeredAt: Iso | null;
  readonly builtBy: string | null;
  readonly askedBy: string | null;
  readonly notReproducible: boolean;
  readonly provenance: string | null;
  readonly log: string | null;
  readonly artifacts: ReadonlyArray<{ readonly name: string; readonly kind: string; readonly digest: string; readonly size: number }>;
}
export interface IntentDetail {
  readonly verb: string;
  readonly module: string | null;
  readonly node: string | null;
  readonly build: string | null;
  readonly who: string;
  readonly why: string;
  readonly at: Iso;
}
export interface ModuleDetail {
  readonly module: string;
  readonly addedAt: Iso;
  readonly readAt: Iso | null;
  readonly declare: { readonly policy: DeclarePolicy; readonly from: 'manifest' | 'mesh' };
  readonly hold: { readonly by: string; readonly why: string; readonly at: Iso; readonly build: string | null } | null;
  readonly placements: readonly PlacementDetail[];
  /** Newest first, at most 20. */
  readonly builds: readonly BuildDetail[];
  /** Of the inspection of the head. */
  readonly problems: readonly string[];
  readonly notes: readonly string[];
  /** Newest first, at most 20. */
  readonly intents: readonly IntentDetail[];
}
export interface NodeDetail {
  readonly node: string;
  readonly facts: Readonly<Record<string, string>>;
  readonly addedAt: Iso;
  readonly publicKey: string | null;
  readonly keyRefused: string | null;
  readonly epochs: number;
  readonly epochSince: Iso | null;
  readonly hostVersion: string | null;
  readonly shapes: readonly string[];
  readonly sent: { readonly sequence: number; readonly digest: string; readonly at: Iso | null } | null;
  readonly received: { readonly sequence: number; readonly digest: string | null } | null;
  readonly applied: { readonly sequence: number; readonly digest: string | null } | null;
  readonly placements: readonly PlacementDetail[];
  /** Newest first, at most 10. */
  readonly reports: ReadonlyArray<{ readonly epoch: string; readonly number: number; readonly receivedAt: Iso; readonly failures: readonly string[]; readonly changes: number; readonly refused: string | null }>;
}
/** Both go with the row of overview.ts; null: there is no such module or node. */
export declare function moduleDetail(db: Db, module: string): Promise<ModuleDetail | null>;
export declare function nodeDetail(db: Db, node: string): Promise<NodeDetail | null>;

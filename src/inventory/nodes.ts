import type { Times } from '../domain/times';
import type { NodeBeat } from '../schema/messages';
import type { Db } from './db';

export interface Intent {
  readonly who: string;
  readonly why: string;
}
/** UsageError when the name is taken. */
export declare function addNode(db: Db, node: { readonly name: string; readonly site: string; readonly facts: Readonly<Record<string, string>>; readonly brokerUser: string }): Promise<void>;
export declare function removeNode(db: Db, name: string, intent: Intent): Promise<void>;
export declare function listNodes(db: Db): Promise<Array<{ readonly name: string; readonly site: string; readonly facts: Readonly<Record<string, string>>; readonly brokerUser: string; readonly publicKey: string | null }>>;
/** Merged into the facts that are there; an empty value takes the fact away. */
export declare function setFacts(db: Db, node: string, facts: Readonly<Record<string, string>>): Promise<void>;
/** null: there is no such node, or its key is not known yet (`known` tells which). */
export declare function nodeKeys(db: Db, names: readonly string[]): Promise<Map<string, string | null>>;
/** Set-based; the first key of a node is taken, another one later is refused and its beat with it. */
export declare function recordNodeBeats(db: Db, beats: readonly NodeBeat[], now: Date, times: Times): Promise<{ readonly refused: readonly string[] }>;
/** False when it was assigned already. UsageError when there is no such module or node. */
export declare function assign(db: Db, module: string, node: string, intent: Intent): Promise<boolean>;
export declare function unassign(db: Db, module: string, node: string, intent: Intent): Promise<boolean>;

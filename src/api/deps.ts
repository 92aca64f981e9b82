import type { FastifyBaseLogger } from 'fastify';
import type { Times } from '../domain/times';
import type { Db } from '../inventory';
import type { RegistryClient } from '../registry';
import type { TemporalLink } from '../temporal/client';
import type { Probe } from './finding';

export interface ApiConfig {
  /** Where operators and webhooks reach this API, without a slash at the end. */
  readonly publicUrl: string;
  /** null where no UI is known. */
  readonly temporalUiUrl: string | null;
  readonly temporalNamespace: string;
  /** TALLY_HOME: credential files of nodes are written to its folder `nodes`. */
  readonly home: string;
  readonly times: Times;
}

/** A node's own way to the broker. Each call may be made again: it then changes nothing but the password. */
export interface NodeAccess {
  /** Exchange, queue and account of the node. @returns the account, and all that its host needs apart from the node's name. */
  make(node: string): Promise<{ readonly user: string; readonly credentials: object }>;
  remove(node: string, user: string): Promise<void>;
}

export interface ApiDeps {
  readonly db: Db;
  readonly temporal: Pick<TemporalLink, 'nudge' | 'update'>;
  readonly log: FastifyBaseLogger;
  readonly config: ApiConfig;
  /** Seals the webhooks' secrets. */
  readonly meshKey: Buffer;
  /** Holds the whole logs, and what an artifact proves. */
  readonly registry: RegistryClient;
  readonly access: NodeAccess;
  /** An event promised a change of these modules: their refs are read now, and again for a minute until they move. */
  readonly onEvent: (modules: readonly string[]) => Promise<void>;
  /** What `doctor` asks beyond the store: one for each server. */
  readonly probes: readonly Probe[];
}

import type { Times } from '../domain/times';
import type { Sealing } from '../inventory/credentials';
import type { Db } from '../inventory/db';
import type { Reading } from '../inventory/sources';
import type { KeyPair, Link } from '../link';
import type { Log } from '../log';
import type { TemporalLink } from '../temporal/client';

/** What the loops of the control plane share. None of them holds state that another process would miss. */
export interface ControlDeps {
  readonly db: Db;
  readonly link: Link;
  readonly temporal: Pick<TemporalLink, 'nudge' | 'completeRequest'>;
  readonly times: Times;
  readonly log: Log;
  readonly now: () => Date;
  /** Signs the declarations. */
  readonly signingKey: KeyPair;
  /** Makes and seals what only nodes may know. */
  readonly sealing: Sealing;
  /** `node-<node>` as the broker of this vhost knows it. */
  readonly accountOfNode: (node: string) => string;
  /** Asks git, once, within its own time-out; never throws. */
  readonly readRef: (repository: string, ref: string) => Promise<Reading>;
}

/** A loop that runs. It ends what it is at within a bound, and starts nothing new. */
export interface Running {
  stop(): Promise<void>;
}

import type { Db } from './db';
export interface BuildRef {
  readonly id: string;
  readonly commit: string;
  readonly verdict: 'fit' | 'failed' | null;
}
/** A build by its id or the start of its commit (then its newest fit, else newest build). UsageError when there is none or the start is ambiguous. */
export declare function resolveBuild(db: Db, module: string, ref: string): Promise<BuildRef>;
/** The newest fit build of another commit before the one that is declared: where a rollback goes. */
export declare function previousFitBuild(db: Db, module: string): Promise<BuildRef | null>;

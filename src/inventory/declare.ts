import type { Db } from './db';
export interface Declaring {
  readonly module: string;
  readonly buildId: string;
  readonly nodes: readonly string[];
  readonly by: string;
}
/** The one write by which nodes' declarations name a new build. It repeats its conditions; 0: compare again. */
export declare function declareBuild(db: Db, declaring: Declaring): Promise<number>;

import type { NodeReport } from '../schema/messages';
import type { Db } from './db';
/** One transaction for the batch. Each report counts once, in the order of its number. The modules whose facts moved. */
export declare function recordReports(db: Db, reports: readonly NodeReport[], now: Date): Promise<string[]>;

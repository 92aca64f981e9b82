import type { Db } from './db';
/** The secret is sealed with the mesh key before it gets here. */
export declare function setWebhookSecret(db: Db, module: string, sealed: string): Promise<void>;
export declare function webhookModules(db: Db): Promise<Array<{ readonly module: string; readonly repository: string; readonly sealedSecret: string }>>;

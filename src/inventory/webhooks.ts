import { UsageError } from '../domain/errors';
import type { Db } from './db';

/** The secret is sealed with the mesh key before it gets here. */
export async function setWebhookSecret(db: Db, module: string, sealed: string): Promise<void> {
  const set = await db.query('update module set webhook_secret = $2 where name = $1 returning name', [module, sealed]);
  if (set.length === 0) throw new UsageError(`there is no module ${module}: tally module list`);
}

export async function webhookModules(
  db: Db,
): Promise<Array<{ readonly module: string; readonly repository: string; readonly sealedSecret: string }>> {
  return db.query('select name as module, repository, webhook_secret as "sealedSecret" from module where webhook_secret is not null order by name');
}

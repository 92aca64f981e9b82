import type { Db } from './db';

/**
 * Within a transaction that is going to change what the graph is made from, before it locks the row of any module: the
 * triggers would take it too, too late to wait for nobody in a circle.
 */
export async function lockGraph(tx: Db): Promise<void> {
  await tx.query('select lock_graph()');
}

import type { Db } from './db';

/** Nodes before modules, each in the order of their names: what sends and what takes reports in does the same, so nobody waits in a circle. */
export async function lockNodes(tx: Db, nodes: readonly string[]): Promise<void> {
  await tx.query('select from node where name = any ($1) order by name for no key update', [nodes]);
}

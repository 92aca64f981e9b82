import type { Db } from './db';

/** By module the nodes it is assigned to, in the order of their names; modules on no node are left out. */
export async function placedNodes(db: Db): Promise<Map<string, string[]>> {
  const rows = await db.query<{ module: string; nodes: string[] }>(
    'select module, array_agg(node order by node) as nodes from placement group by module',
  );
  return new Map(rows.map((row) => [row.module, row.nodes]));
}

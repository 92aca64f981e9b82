import type { Db } from './db';

export interface Declaring {
  readonly module: string;
  readonly buildId: string;
  readonly nodes: readonly string[];
  readonly by: string;
}

/**
 * The one write by which nodes' declarations name a new build. It repeats its conditions under the module's lock: fit,
 * still effective or named by a person, not held (but for the build that the hold is about). 0: compare again.
 */
export async function declareBuild(db: Db, { module, buildId, nodes, by }: Declaring): Promise<number> {
  return db.transaction(async (tx) => {
    await lockNodes(tx, nodes);
    const declared = await tx.query(
      `with chosen as (
         select m.name from module m
         where m.name = $1 and (m.held_at is null or m.held_build = $2)
           and $2 in (m.effective_build, m.approved_build, m.held_build)
           and exists (select from build b where b.id = $2 and b.module = m.name and b.verdict = 'fit')
         for no key update
       )
       update placement p set build_id = $2, declared_at = now(), declared_by = $4
       from chosen where p.module = chosen.name and p.node = any ($3) and p.build_id is distinct from $2
       returning p.node`,
      [module, buildId, nodes, by],
    );
    return declared.length;
  });
}

/** Nodes before modules, each in the order of their names: what sends and what takes reports in does the same, so nobody waits in a circle. */
export async function lockNodes(tx: Db, nodes: readonly string[]): Promise<void> {
  await tx.query('select from node where name = any ($1) order by name for no key update', [nodes]);
}

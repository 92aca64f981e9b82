import type { Db } from '../../src/inventory/db';
import { type Benchmark, elapsedMs, median } from '../figure';
import { withServers } from '../mesh';

const WIDE = 5_000;
const NARROW = 500;
const ROUNDS = 5;

/** One statement moves a module's placements on many nodes, with all that is told by it: what grows with the rows, and not with their square. */
export const wideChange: Benchmark = {
  figures: ['placements-5000-over-500'],
  run: ({ print, say }) =>
    withServers(['postgres'], say, async ({ db }) => {
      await db.query(`insert into module (name, repository, ref) values ('wide', 'file:///nowhere', 'main'), ('narrow', 'file:///nowhere', 'main')`);
      await db.query(`insert into node (name, broker_user) select 'n' || n, 'n' || n from generate_series(1, $1::int) n`, [WIDE]);
      for (const [module, count] of [
        ['wide', WIDE],
        ['narrow', NARROW],
      ] as const)
        await db.query(`insert into placement (module, node) select $1, 'n' || n from generate_series(1, $2::int) n`, [module, count]);
      const [wide, narrow] = [await moved(db, 'wide'), await moved(db, 'narrow')];
      print({ name: 'placements-5000-over-500', value: wide, unit: 'ms', reference: { name: 'ten times 500', value: (narrow * WIDE) / NARROW } });
    }),
};

/** In one session, whose plans were made for a single row: as the sessions of a control plane are. */
async function moved(db: Db, module: string): Promise<number> {
  const runs: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await db.transaction(async (tx) => {
      await tx.query(`update placement set applied_build = $2 where module = $1 and node = 'n1'`, [module, `first ${round}`]);
      runs.push(await elapsedMs(() => tx.query('update placement set applied_build = $2 where module = $1', [module, `all ${round}`])));
    });
  }
  return median(runs);
}

import { countChanged, sweepModules } from '../../src/inventory/modules';
import { type Benchmark, elapsedMs, median } from '../figure';
import { seedModules, withServers } from '../mesh';

const MODULES = 10_000;

/** A sweep over modules of which none has changed: one indexed question, nothing for Temporal to do. */
export const sweepTenThousand: Benchmark = {
  figures: ['sweep-10k'],
  run: ({ print, say }) =>
    withServers(['postgres'], say, async ({ db }) => {
      await seedModules(db, MODULES);
      const changed = await countChanged(db);
      if (changed !== 0) throw new Error(`the seeded modules are not at rest: ${changed} of ${MODULES} changed`);
      const runs: number[] = [];
      for (let run = 0; run < 21; run += 1) {
        runs.push(
          await elapsedMs(async () => {
            const found = await sweepModules(db, 1_000, new Date(), new Date());
            if (found.length !== 0) throw new Error(`a no-op sweep would have nudged ${found.length} modules`);
          }),
        );
      }
      print({ name: 'sweep-10k', value: median(runs), unit: 'ms', reference: { name: 'aim', value: 100 } });
    }),
};

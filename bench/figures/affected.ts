import { createHash } from 'node:crypto';
import { orderOf } from '../../src/domain/graph';
import { defaultTimes } from '../../src/domain/times';
import { recordAnswer } from '../../src/inventory/answers';
import { edgesFrom } from '../../src/inventory/asking';
import type { Db } from '../../src/inventory/db';
import { countChanged } from '../../src/inventory/modules';
import { openBuild, openInspection } from '../../src/inventory/requests';
import { recordReading } from '../../src/inventory/sources';
import type { ExportedName, ImportedName, Input } from '../../src/schema/messages';
import { type Benchmark, elapsedMs, median } from '../figure';
import { nearLeaves, SEED_NAME, seedGraph } from '../graph';
import { withServers } from '../mesh';

const SIZES = [1_000, 10_000, 100_000];
const CHANGES = 31;
/** Not counted: connections, plans and pages that the first ones find cold. */
const WARMING = 6;
const COMMIT = 'b'.repeat(40);

/** From a module's answered build of other digests to the modules that are stale by it, in the order in which they are to be built. */
export const affected: Benchmark = {
  figures: ['affected-100k-over-1k'],
  run: async ({ print, say }) => {
    const medians: number[] = [];
    for (const count of SIZES) {
      const found = await withServers(
        ['postgres'],
        () => undefined,
        ({ db }) => measure(db, count),
      );
      medians.push(found);
      say(`${count} modules: ${found.toFixed(2)} ms`);
    }
    const [small = Number.NaN, , large = Number.NaN] = medians;
    print({ name: 'affected-100k-over-1k', value: large, unit: 'ms', reference: { name: 'at 1,000 modules', value: small } });
  },
};

async function measure(db: Db, count: number): Promise<number> {
  await seedGraph(db, count);
  await db.query('select settle_graph(array(select name from module order by name limit 1000))');
  const moved = await countChanged(db);
  if (moved !== 0) throw new Error(`the seeded graph is not the one that the store would have kept: ${moved} modules changed`);
  const runs: number[] = [];
  for (const module of await nearLeaves(db, count, CHANGES)) {
    const build = await openedBuild(db, module);
    let set: string[] = [];
    const ms = await elapsedMs(async () => {
      await answerFit(db, build);
      const { order } = orderOf(await edgesFrom(db, [module], 'inbound'));
      set = order.flat();
    });
    if (!set.includes(module) || set.length < 2) throw new Error(`${module} is built on by others, and the rebuild set is ${set.join(', ')}`);
    const stale = await db.query<{ name: string }>('select name from module where name = any ($1) and is_settling', [set]);
    if (stale.length !== set.length - 1) throw new Error(`${set.length - 1} modules build on ${module}, and ${stale.length} of them are stale`);
    runs.push(ms);
  }
  return median(runs.slice(WARMING));
}

/** The module's head moves, is inspected and says the same, and a build of it is open. */
async function openedBuild(db: Db, module: string): Promise<{ readonly id: string; readonly inputs: Input[] }> {
  await recordReading(db, module, { kind: 'head', commit: COMMIT }, new Date(), defaultTimes);
  const [names] = await db.query<{ exports: ExportedName[]; imports: ImportedName[] }>('select exports, imports from inspection where module = $1', [
    module,
  ]);
  if (names?.exports[0]?.name !== SEED_NAME(module)) throw new Error(`${module} does not export what it was seeded with`);
  const request = (await openInspection(db, module, COMMIT)) ?? '';
  await recordAnswer(
    db,
    { ...answered(request), kind: 'inspect', outcome: 'valid', manifest: { module }, notes: [], ...names },
    new Date(),
    defaultTimes,
  );
  const [head] = await db.query<{ closure: string }>('select closure from module where name = $1', [module]);
  const id = await openBuild(db, { module, commit: COMMIT, closure: head?.closure ?? '', platform: 'linux-amd64', askedBy: null });
  if (id === null) throw new Error(`no build of ${module} can be opened`);
  const [body] = await db.query<{ inputs: Input[] }>(`select body -> 'inputs' as inputs from request where id = $1`, [id]);
  return { id, inputs: body?.inputs ?? [] };
}

async function answerFit(db: Db, { id, inputs }: { readonly id: string; readonly inputs: Input[] }): Promise<void> {
  const digest = `sha256:${createHash('sha256').update(id).digest('hex')}`;
  const artifacts = [{ name: 'out', kind: 'go' as const, repository: 'tally/out', digest, blob: digest, size: 1 }];
  const built = { kind: 'build', outcome: 'fit', artifacts, inputs, provenance: null, log: null, steps: {} } as const;
  await recordAnswer(db, { ...answered(id), ...built }, new Date(), defaultTimes);
}

const answered = (request: string) =>
  ({ v: 1, request, attempt: 1, builder: 'bench', startedAt: '2026-11-29T12:00:00.000Z', endedAt: '2026-11-29T12:00:01.000Z' }) as const;

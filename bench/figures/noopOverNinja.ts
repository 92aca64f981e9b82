import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Db } from '../../src/inventory/db';
import { countChanged, sweepModules } from '../../src/inventory/modules';
import { run } from '../../src/servers/run';
import { type Bench, type Benchmark, elapsedMs, median } from '../figure';
import { seedGraph } from '../graph';
import { withServers } from '../mesh';

const MODULES = 10_000;
/** Two levels of three import, so that there are some 50,000 edges. */
const SHAPE = { levels: 3, inputs: 8 };
const LEAST_EDGES = 50_000;
const RUNS = 21;
const NINJA_WITHIN_MS = 300_000;

/** The question whether anything of a graph is to be built, where nothing is: by a sweep over the store, and by ninja over files. */
export const noopOverNinja: Benchmark = {
  figures: ['noop-over-ninja'],
  run: async ({ print, peers, say }) => {
    const edges: Edge[] = [];
    const value = await withServers(['postgres'], say, async ({ db }) => {
      await seedGraph(db, MODULES, SHAPE);
      edges.push(...(await db.query<Edge>('select module, input from build_edge order by module, input')));
      if (edges.length < LEAST_EDGES) throw new Error(`${edges.length} edges are fewer than ${LEAST_EDGES}`);
      return await sweepMs(db);
    });
    const ninja = await findNinja({ peers, say });
    const reference = ninja === null ? null : { name: 'ninja', value: await ninjaMs(ninja, edges) };
    if (reference === null) say('there is no ninja on the PATH: --peers installs one');
    print({ name: 'noop-over-ninja', value, unit: 'ms', reference });
  },
};

interface Edge {
  readonly module: string;
  readonly input: string;
}

async function sweepMs(db: Db): Promise<number> {
  const changed = await countChanged(db);
  if (changed !== 0) throw new Error(`the seeded modules are not at rest: ${changed} of ${MODULES} changed`);
  const runs: number[] = [];
  for (let n = 0; n < RUNS; n += 1) {
    runs.push(
      await elapsedMs(async () => {
        const found = await sweepModules(db, 1_000, new Date(), new Date());
        if (found.length !== 0) throw new Error(`a no-op sweep would have nudged ${found.length} modules`);
      }),
    );
  }
  return median(runs);
}

/** One rule a module, from its source and what its inputs made. */
async function ninjaMs(ninja: string, edges: readonly Edge[]): Promise<number> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'tally-bench-ninja-'));
  try {
    const inputs = new Map<string, string[]>();
    for (const { module, input } of edges) {
      inputs.set(input, inputs.get(input) ?? []);
      inputs.set(module, [...(inputs.get(module) ?? []), input]);
    }
    mkdirSync(path.join(dir, 'out'));
    const rules = ['rule make', '  command = : > $out'];
    for (const [module, of] of inputs) {
      writeFileSync(path.join(dir, `${module}.src`), '');
      rules.push(`build out/${module}: make ${module}.src${of.map((input) => ` out/${input}`).join('')}`);
    }
    writeFileSync(path.join(dir, 'build.ninja'), `${rules.join('\n')}\n`);
    const once = async (): Promise<string> => {
      const { ok, stdout, stderr } = await run(ninja, ['-C', dir], { timeoutMs: NINJA_WITHIN_MS });
      if (!ok) throw new Error(`ninja: ${stderr || stdout}`);
      return stdout;
    };
    await once();
    const runs: number[] = [];
    for (let n = 0; n < RUNS; n += 1) {
      runs.push(
        await elapsedMs(async () => {
          if (!(await once()).includes('no work to do')) throw new Error('ninja had something to do');
        }),
      );
    }
    return median(runs);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** From the PATH, else, where peers may be installed, Debian's. */
async function findNinja({ peers, say }: Pick<Bench, 'peers' | 'say'>): Promise<string | null> {
  const isThere = async (): Promise<boolean> => (await run('ninja', ['--version'], { timeoutMs: 10_000 })).ok;
  if (await isThere()) return 'ninja';
  if (!peers) return null;
  say('ninja is installed');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['update', '--quiet'], { timeoutMs: NINJA_WITHIN_MS, env });
  await run('apt-get', ['install', '--quiet', '--yes', '--no-install-recommends', 'ninja-build'], { timeoutMs: NINJA_WITHIN_MS, env });
  if (await isThere()) return 'ninja';
  throw new Error('ninja could not be installed from ninja-build: install it, or leave --peers out');
}

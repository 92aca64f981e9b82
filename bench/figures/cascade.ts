import { setTimeout as pause } from 'node:timers/promises';
import { defaultTimes } from '../../src/domain/times';
import type { Db } from '../../src/inventory/db';
import { recordReadings } from '../../src/inventory/sources';
import { startControlProcess } from '../control';
import { type Benchmark, elapsedMs, median } from '../figure';
import { SEED_COMMIT, withServers } from '../mesh';
import { type CodeOf, startStubBuilder } from '../stubBuilder';

const MODULES = 100;
const LEVELS = 6;
/** Of the level before it. */
const INPUTS = 3;
const ROUNDS = 3;
const POLL_MS = 20;
const GIVE_UP_MS = 300_000;

/** One commit at the root of a graph, until everything that builds on it is fit; beside as many modules that build on nothing and move at once. */
export const cascade: Benchmark = {
  figures: ['cascade-100'],
  run: ({ print, say }) =>
    withServers(['temporal', 'postgres', 'rabbitmq', 'registry'], say, async (servers) => {
      const { db } = servers;
      const graph = names('graph');
      const alone = names('alone');
      await addModules(db, [...graph, ...alone]);
      const control = await startControlProcess(servers);
      const builder = await startStubBuilder(servers.addresses.amqpUrl, 20, codeOf(graph));
      try {
        await untilFit(db, say);
        const [root = ''] = graph;
        const [cascading, independent]: [number[], number[]] = [[], []];
        for (let round = 0; round < ROUNDS; round += 1) {
          const commit = `${round + 1}`.repeat(40);
          independent.push(await deliver(db, alone, commit, MODULES, say));
          cascading.push(await deliver(db, [root], commit, MODULES, say));
        }
        const reference = { name: 'independent modules', value: median(independent) / MODULES };
        print({ name: 'cascade-100', value: median(cascading) / MODULES, unit: 'ms', reference });
      } finally {
        await builder.stop();
        await control.stop();
      }
    }),
};

function names(kind: string): string[] {
  return Array.from({ length: MODULES }, (_, n) => `${kind}${String(n).padStart(3, '0')}`);
}

/** The root alone in the first level, the others spread over the rest. */
function codeOf(graph: readonly string[]): CodeOf {
  const [root = '', ...others] = graph;
  const width = Math.ceil(others.length / (LEVELS - 1));
  const levels = [[root], ...Array.from({ length: LEVELS - 1 }, (_, n) => others.slice(n * width, (n + 1) * width))];
  const inputs = new Map<string, string[]>();
  levels.forEach((level, n) => {
    const before = levels[n - 1] ?? [];
    level.forEach((module, at) => {
      const used = Array.from({ length: INPUTS }, (_, k) => before[(at * 7 + k * 5) % Math.max(before.length, 1)]);
      inputs.set(module, [...new Set(used.filter((one) => one !== undefined))]);
    });
  });
  return (module) => {
    const at = { language: 'go', line: 1 } as const;
    const imports = (inputs.get(module) ?? []).map((name) => ({ ...at, name, candidates: [name], test: false, file: 'main.go' }));
    return inputs.has(module) ? { exports: [{ ...at, name: module, artifact: module, file: 'go.mod' }], imports } : {};
  };
}

/** Their repositories are nowhere, and nobody asks them. */
async function addModules(db: Db, modules: readonly string[]): Promise<void> {
  await db.query(
    `insert into module (name, repository, ref, head_commit, head_since, read_at, next_read_at)
     select name, 'file:///nowhere/' || name, 'refs/heads/main', $2, now(), now(), now() + interval '1 day' from unnest($1::text[]) name`,
    [modules, SEED_COMMIT],
  );
}

/** How long it takes until everything has settled, in milliseconds; each of `count` modules has then been built once more. */
async function deliver(db: Db, moved: readonly string[], commit: string, count: number, say: (text: string) => void): Promise<number> {
  const before = await builds(db);
  const ms = await elapsedMs(async () => {
    const readings = moved.map((module) => ({ module, reading: { kind: 'head', commit } as const }));
    await recordReadings(db, readings, new Date(), { ...defaultTimes, readRefs: 86_400_000 });
    await untilFit(db, say);
  });
  const made = (await builds(db)) - before;
  if (made !== count) throw new Error(`${made} builds were made of ${count} modules`);
  return ms;
}

async function builds(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>(`select count(*)::int as count from build where verdict = 'fit'`);
  return row?.count ?? 0;
}

async function untilFit(db: Db, say: (text: string) => void): Promise<void> {
  const deadline = Date.now() + GIVE_UP_MS;
  for (let round = 0; ; round += 1) {
    const [row] = await db.query<{ settling: number }>('select count(*)::int as settling from module where is_settling');
    const settling = row?.settling ?? 0;
    if (settling === 0) return;
    if (Date.now() > deadline) throw new Error(`${settling} modules are not fit after ${GIVE_UP_MS / 1_000} s`);
    if (round % 100 === 0) say(`${settling} modules are not fit yet`);
    await pause(POLL_MS);
  }
}

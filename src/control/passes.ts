/** The passes that Temporal's schedules start. */
import type { Passes } from '../../workflows/shared';
import { compare } from '../domain/comparison';
import { listModules, lookAtUnreadAgain, readManyFacts, sweepModules } from '../inventory/modules';
import { moduleStatuses } from '../inventory/overview';
import { prune } from '../inventory/prune';
import type { ControlDeps } from './deps';
import { nudgeAll } from './nudges';
import type { SourceReader } from './sources';

/** Of ten thousand in one pass; the next pass takes the rest. */
const MOST_SWEPT = 2_000;
const FACTS_AT_A_TIME = 500;
/** What moved just now is on its way: the sweep is for what got lost. */
const OWED_FOR_MS = 5_000;

export function createPasses(deps: ControlDeps, sources: Pick<SourceReader, 'readDue'>): Passes {
  const { db, now } = deps;
  return {
    readSources: () => sources.readDue(),
    sweep: async () => {
      const at = now();
      return await nudgeAll(deps, await sweepModules(db, MOST_SWEPT, at, new Date(at.getTime() - OWED_FOR_MS)));
    },
    fullPass: async () => {
      const missed = await findMissed(deps);
      await prune(db);
      return missed;
    },
  };
}

/**
 * Compares every module anew. One whose facts are said to be unchanged and which compares differently all the same was
 * missed by the versions: a defect of ours, so it is an alarm, and the module is told to look again.
 */
async function findMissed(deps: ControlDeps): Promise<number> {
  const { db, log, now, times } = deps;
  const modules = await listModules(db);
  // What waits for code to be read is told by no version: whoever is free by now is owed a comparison, and no alarm.
  const owedNow = async (): Promise<Set<string>> => {
    await lookAtUnreadAgain(db, modules.length);
    return new Set((await sweepModules(db, modules.length, now(), now())).map((module) => module.name));
  };
  let missed = 0;
  for (let from = 0; from < modules.length; from += FACTS_AT_A_TIME) {
    const part = modules.slice(from, from + FACTS_AT_A_TIME);
    const names = part.map((module) => module.name);
    const recorded = new Map((await moduleStatuses(db, names)).map((status) => [status.module, status]));
    const owed = await owedNow();
    const differing = (await readManyFacts(db, names, now(), times))
      .filter((facts) => !owed.has(facts.module))
      .filter((facts) => {
        const status = recorded.get(facts.module);
        const { next, situation } = compare(facts, times);
        return status !== undefined && status.next !== null && (status.next !== next.kind || status.situation !== situation);
      });
    if (differing.length === 0) continue;
    // Facts that moved between the two readings are no alarm: the versions have them.
    const moved = await owedNow();
    const alarming = differing.filter((facts) => !moved.has(facts.module));
    for (const { module } of alarming) log.error({ module }, 'the full pass compares this module differently and its version did not move');
    const told = alarming.flatMap(({ module, version }) =>
      part.filter(({ name }) => name === module).map(({ name, repository }) => ({ name, repository, version })),
    );
    await nudgeAll(deps, told);
    missed += alarming.length;
  }
  return missed;
}

/** Tells the workflows of modules whose facts moved to look again: one signal a module, however much moved. */
import { type ChangedModule, changedModules, markNudged } from '../inventory/modules';
import type { ControlDeps } from './deps';
import { createLimit } from './limit';
import { type Loop, startLoop } from './loop';

const MOST_A_PASS = 1_000;
const AT_A_TIME = 16;
const EVERY_MS = 1_000;
const BUSY_PAUSE_MS = 250;

export function startNudgePass(deps: ControlDeps): Loop {
  return startLoop({
    name: 'nudge pass',
    log: deps.log,
    pauseMs: (found) => (found > 0 ? BUSY_PAUSE_MS : EVERY_MS),
    pass: async () => {
      const changed = await changedModules(deps.db, MOST_A_PASS);
      return await nudgeAll(deps, changed);
    },
  });
}

/**
 * Marks as nudged those that were told. The first that cannot be told ends it: Temporal is away, and the rest would wait
 * for a deadline each.
 * @returns how many were told.
 */
export async function nudgeAll({ db, temporal }: ControlDeps, modules: readonly ChangedModule[]): Promise<number> {
  const limit = createLimit(AT_A_TIME);
  const told: ChangedModule[] = [];
  let failure: { error: unknown } | null = null;
  const tell = async (module: ChangedModule): Promise<void> => {
    if (failure !== null) return;
    try {
      await temporal.nudge({ name: module.name, repository: module.repository });
      told.push(module);
    } catch (error) {
      failure = { error };
    }
  };
  await Promise.all(modules.map((module) => limit.run(() => tell(module))));
  if (told.length > 0) await markNudged(db, told);
  const failed = failure as { error: unknown } | null;
  if (failed !== null) throw failed.error;
  return told.length;
}

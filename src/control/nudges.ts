/**
 * Tells the workflows of modules whose facts moved to look again: one signal a module, however much moved. Where nothing
 * is to be decided, a builder's next step say, the new line is written down here and Temporal is not asked for a turn.
 */
import { compare } from '../domain/comparison';
import type { Comparison } from '../domain/facts';
import {
  type ChangedModule,
  changedModules,
  type Decided,
  lookAtUnreadAgain,
  markNudged,
  type OwedModule,
  readManyFacts,
  recordComparisons,
} from '../inventory/modules';
import type { ControlDeps } from './deps';
import { createLimit } from './limit';
import { type Loop, startLoop } from './loop';

const MOST_A_PASS = 500;
const AT_A_TIME = 16;
const EVERY_MS = 1_000;
const BUSY_PAUSE_MS = 250;
const GRACE = { answerMs: 1_000, answeredMs: 5_000, waitMs: 2_000 };
/** In a cascade most are free again before that; one that is not is shown to wait in Temporal too. */
const WAITS_LONG_MS = 15_000;

export function startNudgePass(deps: ControlDeps): Loop {
  return startLoop({
    name: 'nudge pass',
    log: deps.log,
    pauseMs: (found) => (found > 0 ? BUSY_PAUSE_MS : EVERY_MS),
    pass: async () => {
      const { db, now, times } = deps;
      await lookAtUnreadAgain(db, MOST_A_PASS);
      const owed = await changedModules(db, MOST_A_PASS, now(), GRACE);
      if (owed.length === 0) return 0;
      const facts = await readManyFacts(
        db,
        owed.map(({ name }) => name),
        now(),
        times,
      );
      const comparisons = new Map(facts.map((one) => [one.module, compare(one, times)]));
      const isQuiet = ({ name, decided }: OwedModule): boolean => {
        const comparison = comparisons.get(name);
        return comparison !== undefined && (beginsToWait(comparison, decided) || !isNews(comparison, decided));
      };
      const quiet = owed.filter(isQuiet);
      const longer = new Date(now().getTime() + WAITS_LONG_MS).toISOString();
      const written = quiet.flatMap(({ name, decided }) => {
        const comparison = comparisons.get(name);
        if (comparison === undefined) return [];
        return beginsToWait(comparison, decided) && (comparison.until ?? longer) >= longer ? { ...comparison, until: longer } : comparison;
      });
      await recordComparisons(db, written, now());
      await nudgeAll(
        deps,
        owed.filter((module) => !quiet.includes(module)),
      );
      return owed.length;
    },
  });
}

/** From being in step to waiting for inputs that settle: as a rule the next news is that it may go on. */
function beginsToWait({ next, situation, cancel, needsPerson, counts }: Comparison, decided: Decided): boolean {
  return (
    decided.next === 'nothing' &&
    next.kind === 'wait' &&
    situation === 'waiting' &&
    cancel.length === 0 &&
    !needsPerson &&
    counts.stuck === decided.stuck
  );
}

/** Whether a workflow has something to do or to show that the last comparison did not say. */
function isNews({ next, cancel, situation, verdict, counts }: Comparison, decided: Decided): boolean {
  const isToDo = cancel.length > 0 || next.kind === 'declare' || ('requestId' in next && next.requestId === null);
  return isToDo || next.kind !== decided.next || situation !== decided.situation || verdict !== decided.verdict || counts.stuck !== decided.stuck;
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

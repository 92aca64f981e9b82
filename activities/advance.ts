/** The turn of a module: compare, carry out what can be carried out at once, compare again, until something has to be waited for. */
import type { Comparison } from '../src/domain/facts';
import type { Advanced } from '../workflows/shared';
import { toLook } from './look';

export interface Steps {
  /** From one snapshot of the facts; null when the module is no more. */
  compare(): Promise<Comparison | null>;
  record(comparison: Comparison): Promise<void>;
  /** Each false when the facts had moved since the comparison that asked for it. */
  openRequest(comparison: Comparison): Promise<boolean>;
  declare(comparison: Comparison): Promise<boolean>;
  cancel(ids: readonly string[]): Promise<void>;
  now(): Date;
}

/** A comparison leads to few acts (cancel, open, declare); more than this in a row is a disagreement, not progress. */
const MOST_ACTS = 6;
/** After facts that moved under an act, look again at the latest after this long. */
const RECHECK_MS = 5_000;

/** Done again after a crash in its middle it goes on from what is so by then: a cancelled request's activity is ended by the request pass as well. */
export async function advance(steps: Steps): Promise<Advanced> {
  const cancelled: string[] = [];
  let hasActed = false;
  for (let acts = 0; ; acts += 1) {
    const comparison = await steps.compare();
    if (comparison === null) return { look: null, cancelled, hasActed };
    const isToAct = needsAct(comparison);
    if (!isToAct || acts === MOST_ACTS) {
      await steps.record(comparison);
      const look = toLook(comparison);
      // Whatever moved the facts nudges as well, and this is the safety net.
      if (isToAct) return { look: { ...look, until: new Date(steps.now().getTime() + RECHECK_MS).toISOString() }, cancelled, hasActed };
      return { look, cancelled, hasActed };
    }
    if (comparison.cancel.length > 0) {
      await steps.cancel(comparison.cancel);
      cancelled.push(...comparison.cancel);
    } else if (comparison.next.kind === 'declare') hasActed = (await steps.declare(comparison)) || hasActed;
    else hasActed = (await steps.openRequest(comparison)) || hasActed;
  }
}

function needsAct({ cancel, next }: Comparison): boolean {
  return cancel.length > 0 || next.kind === 'declare' || ((next.kind === 'inspect' || next.kind === 'build') && next.requestId === null);
}

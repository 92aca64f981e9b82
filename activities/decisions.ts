/** Local activities: thin. Each reads the facts, lets a pure function decide, and writes what was decided. */
import { ApplicationFailure } from '@temporalio/common';
import { compare } from '../src/domain/comparison';
import { UsageError } from '../src/domain/errors';
import type { Comparison, Facts } from '../src/domain/facts';
import type { Times } from '../src/domain/times';
import type { Db } from '../src/inventory/db';
import { declareBuild } from '../src/inventory/declare';
import { recordIntent } from '../src/inventory/intents';
import { readFacts, recordComparison } from '../src/inventory/modules';
import { cancelRequests, openBuild, openInspection } from '../src/inventory/requests';
import type { Acted, Decisions, Look } from '../workflows/shared';
import { toLook } from './look';

export interface DecisionDeps {
  readonly db: Db;
  readonly times: Times;
  readonly now: () => Date;
}

export function createDecisions(deps: DecisionDeps): Decisions {
  const { db, times, now } = deps;

  async function compareNow(module: string): Promise<{ facts: Facts; comparison: Comparison } | null> {
    const facts = await readFacts(db, module, now(), times);
    if (facts === null) return null;
    return { facts, comparison: compare(facts, times) };
  }

  async function look(module: string): Promise<Look | null> {
    const found = await compareNow(module);
    if (found === null) return null;
    await recordComparison(db, found.comparison);
    return toLook(found.comparison);
  }

  /** Compares, acts if the comparison still says so, and compares again. */
  async function actOn(module: string, act: (facts: Facts, comparison: Comparison) => Promise<boolean>): Promise<Acted> {
    const found = await compareNow(module);
    if (found === null) return { acted: false, look: null };
    const acted = await act(found.facts, found.comparison);
    return { acted, look: await look(module) };
  }

  return {
    look,
    openRequest: (module) =>
      actOn(module, async (facts, { next }) => {
        if (next.kind === 'inspect') return (await openInspection(db, module, next.commit)) !== null;
        if (next.kind !== 'build') return false;
        const platform = facts.inspection?.platform ?? 'linux-amd64';
        const opened = await openBuild(db, {
          module,
          commit: next.commit,
          closure: next.closure,
          platform,
          inputs: [],
          askedBy: facts.again?.by ?? null,
        });
        return opened !== null;
      }),
    declareEffective: (module) =>
      actOn(module, async (facts, { next }) => {
        if (next.kind !== 'declare') return false;
        const by = facts.approved?.buildId === next.buildId ? facts.approved.by : 'auto';
        return (await declareBuild(db, { module, buildId: next.buildId, nodes: [...next.nodes], by })) > 0;
      }),
    cancelRequests: (module, ids, reason) =>
      actOn(module, async () => {
        await cancelRequests(db, [...ids], reason);
        return true;
      }),
    async carryOut(module, verb, ask) {
      try {
        return await recordIntent(db, { id: ask.id, verb, module, node: null, buildId: ask.buildId, who: ask.who, why: ask.why });
      } catch (error) {
        // A refusal is an answer; anything else is the store's trouble and is tried again.
        if (error instanceof UsageError) throw ApplicationFailure.nonRetryable(error.message, 'Refused');
        throw error;
      }
    },
  };
}

/** Local activities: thin. Each reads the facts, lets a pure function decide, and writes what was decided. */
import { ApplicationFailure } from '@temporalio/common';
import { compare } from '../src/domain/comparison';
import { UsageError } from '../src/domain/errors';
import type { Facts } from '../src/domain/facts';
import type { Times } from '../src/domain/times';
import type { Db } from '../src/inventory/db';
import { declareBuild } from '../src/inventory/declare';
import { recordIntent } from '../src/inventory/intents';
import { readFacts, recordComparison } from '../src/inventory/modules';
import { cancelRequests, openBuild, openInspection } from '../src/inventory/requests';
import type { Decisions } from '../workflows/shared';
import { advance } from './advance';

export interface DecisionDeps {
  readonly db: Db;
  readonly times: Times;
  readonly now: () => Date;
}

export function createDecisions(deps: DecisionDeps): Decisions {
  const { db, times, now } = deps;

  return {
    advance(module) {
      let facts: Facts | null = null;
      return advance({
        async compare() {
          facts = await readFacts(db, module, now(), times);
          return facts === null ? null : compare(facts, times);
        },
        record: (comparison) => recordComparison(db, comparison),
        async openRequest({ next }) {
          if (next.kind === 'inspect') return (await openInspection(db, module, next.commit)) !== null;
          if (next.kind !== 'build') return false;
          const platform = facts?.inspection?.platform ?? 'linux-amd64';
          const asked = { module, commit: next.commit, closure: next.closure, platform, askedBy: facts?.again?.by ?? null };
          return (await openBuild(db, asked)) !== null;
        },
        async declare({ next }) {
          if (next.kind !== 'declare') return false;
          const by = facts?.approved?.buildId === next.buildId ? facts.approved.by : 'auto';
          return (await declareBuild(db, { module, buildId: next.buildId, nodes: [...next.nodes], by })) > 0;
        },
        cancel: (ids) => cancelRequests(db, ids, 'superseded by a newer commit, or by an input that moved'),
        now,
      });
    },

    async carryOut(module, verb, ask) {
      try {
        return await recordIntent(db, { id: ask.id, verb, module, node: null, buildId: ask.buildId, check: ask.check, who: ask.who, why: ask.why });
      } catch (error) {
        // A refusal is an answer; anything else is the store's trouble and is tried again.
        if (error instanceof UsageError) throw ApplicationFailure.nonRetryable(error.message, 'Refused');
        throw error;
      }
    },
  };
}

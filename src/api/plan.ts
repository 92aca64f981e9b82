/** What would happen next, in its order, and because of what. */
import type { NodeStatus, PlanRow } from '../inventory';
import type { PlanAnswer, PlanStep } from '../schema/api';

/** Work on a head comes before what can be declared already, and that before telling nodes. */
const ORDER: Record<PlanStep['what'], number> = { inspect: 0, build: 1, judge: 2, wait: 3, declare: 4, ask: 5, send: 6 };

export function planOf(
  rows: readonly PlanRow[],
  placed: ReadonlyMap<string, readonly string[]>,
  nodes: readonly NodeStatus[],
  now: Date,
): PlanAnswer {
  const steps: PlanStep[] = rows
    .flatMap((row) => stepsOf(row, placed.get(row.module) ?? []))
    .sort((a, b) => ORDER[a.what] - ORDER[b.what] || a.module.localeCompare(b.module));
  return {
    now: now.toISOString(),
    steps,
    nodes: nodes.flatMap((node): Array<PlanAnswer['nodes'][number]> => {
      const { sending } = node;
      if (sending === 'not worked out') {
        return [{ node: node.node, state: sending, reason: node.notWorkedOut?.reason ?? 'not said', since: node.notWorkedOut?.since ?? null }];
      }
      if (sending !== 'out of date' && sending !== 'never told') return [];
      const reason = sending === 'never told' ? 'it has never been sent a declaration' : 'its declaration differs from what it was last sent';
      return [{ node: node.node, state: sending, reason: node.sendTrouble?.reason ?? reason, since: node.sendTrouble?.since ?? null }];
    }),
  };
}

function stepsOf(row: PlanRow, placed: readonly string[]): PlanStep[] {
  const step = (what: PlanStep['what'], nodes: readonly string[]): PlanStep => ({
    module: row.module,
    what,
    commit: row.commit,
    because: row.reason,
    nodes: [...nodes],
  });
  switch (row.next) {
    case 'inspect':
    case 'build':
    case 'judge':
      return [step(row.next, placed)];
    case 'declare':
    case 'ask':
      return [step(row.next, row.undeclared)];
    case 'wait':
      return [step('wait', [])];
    case 'track':
      return [step('send', row.outstanding)];
    case 'nothing':
      return [];
  }
}

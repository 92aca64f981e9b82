/** The one status that CLI, board, metrics and events read: eight set-based statements, whatever the number of modules. */
import { builderStatuses, getMesh, meshHealth, moduleStatuses, nodeStatuses, stuckStatuses } from '../inventory';
import { cutOffs, unlikeBuilds } from '../inventory/asking';
import type { ModuleRow, NodeRow, StatusAnswer, Urgency } from '../schema/api';
import { neighboursOfAll } from './beside';
import type { ApiDeps } from './deps';
import { alarmsOf, builderRow, CUT_OFF_SHOWN_MS, moduleRow, nodeRow, stuckRow } from './rows';

const ORDER: Record<Urgency, number> = { 'needs you': 0, moving: 1, held: 2, 'in step': 3 };

export async function readStatus({ db, config }: Pick<ApiDeps, 'db' | 'config'>): Promise<StatusAnswer> {
  const now = new Date();
  const { times } = config;
  const [mesh, modules, beside, cutOff, unlike, stuck, nodes, builders, health] = await Promise.all([
    getMesh(db),
    moduleStatuses(db),
    neighboursOfAll(db),
    cutOffs(db, new Date(now.getTime() - CUT_OFF_SHOWN_MS)),
    unlikeBuilds(db),
    stuckStatuses(db, now, times),
    nodeStatuses(db, now, times),
    builderStatuses(db, now, times),
    meshHealth(db),
  ]);
  const stuckOn = new Map(stuck.map((row) => [row.module, row.node]));
  const moduleRows = modules
    .map((status) =>
      moduleRow(status, {
        beside: beside.get(status.module),
        stuckOn: stuckOn.get(status.module),
        cutOffAt: cutOff.get(status.module),
        notReproducible: unlike.has(status.module),
      }),
    )
    .sort(byUrgency);
  const nodeRows = nodes.map(nodeRow);
  const alarms = alarmsOf(health, now, times);
  const away = nodeRows.filter((row) => row.presence === 'away');
  const inStep = moduleRows.filter(isSettled).length;
  return {
    now: now.toISOString(),
    inStep: inStep === moduleRows.length && alarms.length === 0 && nodeRows.every(isTold),
    summary: {
      mesh: mesh.name,
      modules: moduleRows.length,
      inStep: moduleRows.filter((row) => row.urgency === 'in step').length,
      nodes: nodeRows.length,
      away: away.length,
      awaySince: away.map((row) => row.lastBeatAt).sort()[0] ?? null,
      notWorkedOut: nodeRows.filter((row) => row.sending === 'not worked out').length,
    },
    modules: moduleRows,
    stuck: stuck.map(stuckRow),
    nodes: nodeRows,
    builders: builders.map(builderRow),
    alarms,
    workflows: workflowsUrl(config),
  };
}

/** Held is a decision, and no reason for a bad exit status. */
function isSettled(row: ModuleRow): boolean {
  return row.urgency === 'in step' || row.urgency === 'held';
}

/** What a node has not applied yet is its modules' affair; what cannot be told is the node's own. */
function isTold(row: NodeRow): boolean {
  return row.trouble === null && row.sending !== 'not worked out';
}

function workflowsUrl(config: ApiDeps['config']): string | null {
  return config.temporalUiUrl === null
    ? null
    : `${config.temporalUiUrl.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(config.temporalNamespace)}/workflows/`;
}

/** The page of a module's workflow; null where no Temporal UI is known. */
export function workflowUrl(config: ApiDeps['config'], module: string): string | null {
  const base = workflowsUrl(config);
  return base === null ? null : `${base}${encodeURIComponent(`module/${module}`)}`;
}

/** Most urgent first; among equals what has waited longest. */
function byUrgency(a: ModuleRow, b: ModuleRow): number {
  return ORDER[a.urgency] - ORDER[b.urgency] || (a.since ?? '9').localeCompare(b.since ?? '9') || a.module.localeCompare(b.module);
}

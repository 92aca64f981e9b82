/** What is asked about the graph: the tree, the plan, and what an artifact proves. */
import type { FastifyInstance } from 'fastify';
import { orderOf } from '../domain/graph';
import { moduleStatuses, nodeStatuses, planRows, standingRows } from '../inventory';
import { allEdges, edgesFrom, plannedModules, reachedEdges } from '../inventory/asking';
import { type GraphAnswer, graphQuery, type PlanAnswer, planQuery } from '../schema/graphApi';
import type { ApiDeps } from './deps';
import { planOf } from './plan';
import { parse } from './problems';
import { unknownModule } from './reading';

export function graphRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const { db, config } = deps;

  app.get('/graph', async (request): Promise<GraphAnswer> => {
    const { module = null, direction } = parse(graphQuery, request.query);
    const edges = module === null ? await allEdges(db) : await edgesFrom(db, [module], direction);
    const named = module === null ? null : [...new Set([module, ...edges.flatMap((edge) => [edge.module, edge.input])])];
    const modules = await moduleStatuses(db, named);
    if (module !== null && !modules.some((row) => row.module === module)) throw await unknownModule(deps, module);
    return {
      now: new Date().toISOString(),
      module,
      direction,
      modules: modules.map((row) => ({ module: row.module, situation: row.situation, inStep: row.inStep })),
      edges,
      cycles: orderOf(edges.filter((edge) => !edge.isTest)).cycles,
    };
  });

  app.get('/plan', async (request): Promise<PlanAnswer> => {
    const { if: supposed = null } = parse(planQuery, request.query);
    const now = new Date();
    const [rows, nodes, edges, standing] = await Promise.all([
      planRows(db),
      nodeStatuses(db, now, config.times),
      reachedEdges(db, supposed),
      standingRows(db),
    ]);
    const own = supposed === null ? rows.map((row) => row.module) : [supposed];
    const modules = await plannedModules(db, [...new Set([...own, ...edges.map((edge) => edge.module)])]);
    if (supposed !== null && !modules.has(supposed)) throw await unknownModule(deps, supposed);
    return planOf({ rows, edges, modules, nodes, standing, now, supposed });
  });
}

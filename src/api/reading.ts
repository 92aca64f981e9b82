/** What can be read: status, plan, why, and everything about one module or node. */
import type { FastifyInstance } from 'fastify';
import { compare } from '../domain/comparison';
import {
  getMesh,
  listModules,
  moduleDetail,
  moduleStatuses,
  nodeDetail,
  nodeStatuses,
  readFacts,
  unmadeInstances,
  whoSaidDefault,
  wiringOf,
} from '../inventory';
import { commitsOf, cutOffs, cycleThrough, edgesFrom, edgesOf, moduleNames, neighbours, neverRead, unlikeBuilds } from '../inventory/asking';
import type { MeshAnswer, ModuleAnswer, ModuleList, NodeAnswer, NodeList, StatusAnswer, WhyAnswer } from '../schema/api';
import type { ApiDeps } from './deps';
import { unknown } from './problems';
import { CUT_OFF_SHOWN_MS, moduleRow, nodeRow } from './rows';
import { readStatus, workflowUrl } from './status';
import { whyOf } from './why';
import { movedInputs, whyChains } from './whyChain';

interface Named {
  Params: { name: string };
}

export function readingRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const { db, config } = deps;

  app.get('/whoami', async (request) => ({ name: request.who }));

  app.get('/mesh', async (): Promise<MeshAnswer> => {
    const [{ name: mesh, declareDefault }, said] = await Promise.all([getMesh(db), whoSaidDefault(db)]);
    return { mesh, declareDefault, said };
  });

  app.get('/status', async (): Promise<StatusAnswer> => await readStatus(deps));

  app.get('/modules', async (): Promise<ModuleList> => {
    const modules = await moduleStatuses(db);
    return {
      modules: modules.map((row) => ({
        module: row.module,
        repository: row.repository,
        ref: row.ref,
        head: row.head,
        situation: row.situation,
        placements: row.counts.placements,
        hasWebhook: row.hasWebhook,
      })),
    };
  });

  app.get<Named>('/modules/:name', async (request): Promise<ModuleAnswer> => {
    const { name } = request.params;
    const [[status], detail, beside, cutOff, unlike, names, edges, cycle, wiring] = await Promise.all([
      moduleStatuses(db, [name]),
      moduleDetail(db, name),
      neighbours(db, [name]),
      cutOffs(db, new Date(Date.now() - CUT_OFF_SHOWN_MS), [name]),
      unlikeBuilds(db, [name]),
      moduleNames(db, name),
      edgesOf(db, name),
      cycleThrough(db, name),
      wiringOf(db, { module: name }),
    ]);
    if (status === undefined || detail === null) throw await unknownModule(deps, name);
    const { module: _, ...rest } = detail;
    return {
      ...rest,
      now: new Date().toISOString(),
      row: moduleRow(status, { beside: beside.get(name), cutOffAt: cutOff.get(name), notReproducible: unlike.has(name) }),
      graph: { ...names, ...edges, cycle },
      wiring,
      repository: status.repository,
      ref: status.ref,
      hasWebhook: status.hasWebhook,
      temporalUrl: workflowUrl(config, name),
    };
  });

  app.get<Named>('/modules/:name/why', async (request): Promise<WhyAnswer> => {
    const { name } = request.params;
    const facts = await readFacts(db, name, new Date(), config.times);
    const [status] = await moduleStatuses(db, [name]);
    if (facts === null || status === undefined) throw await unknownModule(deps, name);
    const [edges, ring, unlike, unmade, unread, commits] = await Promise.all([
      edgesFrom(db, [name], 'outbound'),
      cycleThrough(db, name),
      unlikeBuilds(db, [name]),
      unmadeInstances(db, name),
      neverRead(db, name),
      commitsOf(
        db,
        movedInputs(facts).flatMap(({ now }) => now ?? []),
      ),
    ]);
    return whyOf(facts, compare(facts, config.times), {
      remedy: moduleRow(status).remedy,
      comparedAt: status.comparedAt,
      chain: whyChains(facts, edges, commits, ring),
      unlike: unlike.get(name) ?? null,
      unmade,
      unread,
    });
  });

  app.get('/nodes', async (): Promise<NodeList> => ({ nodes: (await nodeStatuses(db, new Date(), config.times)).map(nodeRow) }));

  app.get<Named>('/nodes/:name', async (request): Promise<NodeAnswer> => {
    const { name } = request.params;
    const now = new Date();
    const [[status], detail, wiring] = await Promise.all([
      nodeStatuses(db, now, config.times, [name]),
      nodeDetail(db, name),
      wiringOf(db, { node: name }),
    ]);
    if (status === undefined || detail === null) throw await unknownNode(deps, name);
    const { node: _, ...rest } = detail;
    return { ...rest, now: now.toISOString(), row: nodeRow(status), wiring };
  });
}

/** The answer for a name that no module has: names the one that was meant. */
export async function unknownModule({ db }: Pick<ApiDeps, 'db'>, name: string): Promise<Error> {
  const modules = await listModules(db);
  return unknown(
    'module',
    name,
    modules.map((module) => module.name),
  );
}

export async function unknownNode({ db, config }: Pick<ApiDeps, 'db' | 'config'>, name: string): Promise<Error> {
  const nodes = await nodeStatuses(db, new Date(), config.times);
  return unknown(
    'node',
    name,
    nodes.map((row) => row.node),
  );
}

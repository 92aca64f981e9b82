/** What changes something: operators' verbs, modules, nodes and what is placed where. Every one has a who and a why. */

import type { FastifyInstance } from 'fastify';
import { ulid } from 'ulid';
import { EnvironmentError } from '../domain/errors';
import { short } from '../domain/line';
import {
  assign,
  type IntentVerb,
  listNodes,
  type ModuleRef,
  moduleStatuses,
  nodeStatuses,
  previousFitBuild,
  pushNodes,
  recordIntent,
  resolveBuild,
  sayDefault,
  unassign,
  wiringOf,
} from '../inventory';
import { assignBody, type BehindAnswer, buildBehindBody, type DoneAnswer, meshDefaultBody, pushBody, unassignBody, verbBody } from '../schema/api';
import type { ApiDeps } from './deps';
import { Problem, parse } from './problems';
import { unknownModule, unknownNode } from './reading';

interface Named {
  Params: { name: string };
}

/** More than this many at once are left to the sweep, which finds them in any case. */
const NUDGED_AT_ONCE = 500;
const NUDGES_SIDE_BY_SIDE = 16;

export function verbRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const { db, temporal, onEvent } = deps;

  /** The workflow carries it out; where Temporal is away, the store does, and the workflow finds it there. */
  async function ask(
    name: string,
    verb: IntentVerb,
    asked: { who: string; why: string; buildId: string | null; check?: boolean },
  ): Promise<DoneAnswer> {
    const module = await moduleNamed(deps, name);
    const id = ulid();
    try {
      return { says: await temporal.update(module, verb, { id, ...asked }), isUnderWay: true };
    } catch (error) {
      if (!(error instanceof EnvironmentError)) throw error;
      deps.log.warn({ module: name, verb, err: error }, 'Temporal did not take an intent: it is written to the store alone');
      const says = await recordIntent(db, { id, verb, module: name, node: null, ...asked });
      return { says: `${says}; it is written down and takes effect when Temporal, which does not answer now, is back`, isUnderWay: false };
    }
  }

  /** Reads git again and compares; that Temporal is away delays it and loses nothing. */
  async function lookAgain(modules: readonly ModuleRef[]): Promise<boolean> {
    await onEvent(modules.map((module) => module.name));
    return await nudgeAll(deps, modules.slice(0, NUDGED_AT_ONCE));
  }

  app.post<Named>('/modules/:name/nudge', async (request): Promise<DoneAnswer> => {
    const module = await moduleNamed(deps, request.params.name);
    const isUnderWay = await lookAgain([module]);
    return { says: `${module.name}: git is read again and compared${isUnderWay ? '' : ' once Temporal answers'}`, isUnderWay };
  });

  app.post<Named>('/modules/:name/build', async (request): Promise<DoneAnswer> => {
    const { why, again, check } = parse(verbBody.build, request.body);
    const module = await moduleNamed(deps, request.params.name);
    if (again || check) {
      const reason = why === '' ? `build --${check ? 'check' : 'again'}` : why;
      return await ask(module.name, 'rebuild', { who: request.who, why: reason, buildId: null, check });
    }
    const [status] = await moduleStatuses(db, [module.name]);
    const isUnderWay = await lookAgain([module]);
    const head = status?.head == null ? 'its head' : short(status.head);
    const says =
      status?.verdict === 'outstanding'
        ? `${module.name}: ${head} has no verdict yet; git is read again and it is built when it may be`
        : `${module.name}: ${head} is ${status?.verdict ?? 'not known'} already; git is read again, and --again builds it once more`;
    return { says: isUnderWay ? says : `${says}, once Temporal answers`, isUnderWay };
  });

  app.post('/build', async (request): Promise<BehindAnswer> => {
    parse(buildBehindBody, request.body);
    const behind = (await moduleStatuses(db)).filter((row) => row.verdict === 'outstanding' || row.next === 'build' || row.next === 'inspect');
    await lookAgain(behind.map((row) => ({ name: row.module, repository: row.repository })));
    const modules = behind.map((row) => row.module);
    return {
      says: modules.length === 0 ? 'every head has its verdict: nothing is behind' : `${counted(modules.length, 'module')} looked at again`,
      modules,
      nodes: [],
    };
  });

  app.post('/push', async (request): Promise<BehindAnswer> => {
    const { node, again, why } = parse(pushBody, request.body);
    if (node !== undefined) await knownNode(deps, node);
    if (node !== undefined && !again && !(await isBehind(deps, node))) {
      return { says: `${node} is not behind: --again sends it what it already has`, modules: [], nodes: [] };
    }
    const reason = why === '' ? `push${again ? ' --again' : ''}` : why;
    const nodes = await pushNodes(db, { nodes: node === undefined ? null : [node], again, who: request.who, why: reason });
    return { says: nodes.length === 0 ? 'no node is behind' : `${counted(nodes.length, 'node')} told now: ${nodes.join(', ')}`, modules: [], nodes };
  });

  for (const verb of ['hold', 'release'] as const) {
    app.post<Named>(`/modules/:name/${verb}`, async (request) => {
      const { why } = parse(verbBody[verb], request.body);
      return await ask(request.params.name, verb, { who: request.who, why, buildId: null });
    });
  }

  for (const verb of ['declare', 'cancel', 'rollback'] as const) {
    app.post<Named>(`/modules/:name/${verb}`, async (request) => {
      const { why, build } = parse(verbBody[verb], request.body);
      const { name } = request.params;
      await moduleNamed(deps, name);
      const buildId = build === undefined ? await impliedBuild(deps, verb, name) : (await resolveBuild(db, name, build)).id;
      return await ask(name, verb, { who: request.who, why, buildId });
    });
  }

  /** Every module that is silent about it is compared anew, by the sweep. */
  app.post('/mesh/default', async (request): Promise<DoneAnswer> => {
    const { policy, why } = parse(meshDefaultBody, request.body);
    const before = await sayDefault(db, policy, { who: request.who, why: why === '' ? `mesh default ${policy}` : why });
    const does = policy === 'auto' ? 'auto: a fit build declares itself' : 'ask: a fit build waits for tally declare';
    return { says: `modules that do not say otherwise: ${does}${before === policy ? ', as before' : ''}`, isUnderWay: true };
  });

  app.post('/assign', async (request): Promise<DoneAnswer> => {
    const { module, node, use, why } = parse(assignBody, request.body);
    const ref = await moduleNamed(deps, module);
    await knownNode(deps, node);
    const isNew = await assign(db, module, node, { who: request.who, why: why === '' ? 'assign' : why }, use);
    const { bindings } = await wiringOf(db, { module, node });
    const bound = bindings.map((one) => `, ${one.name} by ${one.provider} on ${one.providerNode}`).join('');
    return { says: `${module} ${isNew ? `is placed on ${node}` : `was on ${node} already`}${bound}`, isUnderWay: await nudgeAll(deps, [ref]) };
  });

  app.post('/unassign', async (request): Promise<DoneAnswer> => {
    const { module, node, why } = parse(unassignBody, request.body);
    const ref = await moduleNamed(deps, module);
    await knownNode(deps, node);
    const wasThere = await unassign(db, module, node, { who: request.who, why: why === '' ? 'unassign' : why });
    return { says: wasThere ? `${module} is taken from ${node}` : `${module} was not on ${node}`, isUnderWay: await nudgeAll(deps, [ref]) };
  });
}

async function impliedBuild({ db }: ApiDeps, verb: 'declare' | 'cancel' | 'rollback', module: string): Promise<string | null> {
  if (verb !== 'rollback') return null;
  const previous = await previousFitBuild(db, module);
  if (previous === null) throw new Problem(409, `${module} has no earlier fit build to go back to: tally module show ${module} lists its builds`);
  return previous.id;
}

export async function moduleNamed(deps: ApiDeps, name: string): Promise<ModuleRef> {
  const [status] = await moduleStatuses(deps.db, [name]);
  if (status === undefined) throw await unknownModule(deps, name);
  return { name, repository: status.repository };
}

async function knownNode(deps: ApiDeps, name: string): Promise<void> {
  if (!(await listNodes(deps.db)).some((node) => node.name === name)) throw await unknownNode(deps, name);
}

async function isBehind({ db, config }: ApiDeps, name: string): Promise<boolean> {
  const [status] = await nodeStatuses(db, new Date(), config.times, [name]);
  return status !== undefined && status.sending !== 'up to date' && status.sending !== 'nothing to tell';
}

/** @returns false when Temporal does not answer: the pass a second and the sweep nudge these later. */
export async function nudgeAll({ temporal, log }: ApiDeps, modules: readonly ModuleRef[]): Promise<boolean> {
  for (let at = 0; at < modules.length; at += NUDGES_SIDE_BY_SIDE) {
    try {
      await Promise.all(modules.slice(at, at + NUDGES_SIDE_BY_SIDE).map((module) => temporal.nudge(module)));
    } catch (error) {
      if (!(error instanceof EnvironmentError)) throw error;
      log.warn({ err: error }, 'Temporal did not take a nudge: the sweep repeats it');
      return false;
    }
  }
  return true;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? ' is' : 's are'}`;
}

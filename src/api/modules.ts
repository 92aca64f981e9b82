/** Modules: added, removed, and their webhooks' secrets. */
import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { UsageError } from '../domain/errors';
import { addModule, removeModule, setWebhookSecret, webhookModules } from '../inventory';
import { type EdgeDetail, edgesOf } from '../inventory/asking';
import { openWithMeshKey, sealWithMeshKey } from '../link';
import { addModuleBody, type DoneAnswer, removeBody, type WebhookAnswer } from '../schema/api';
import { parseAddress } from '../source';
import type { ApiDeps } from './deps';
import { Problem, parse } from './problems';
import { moduleNamed, nudgeAll } from './verbs';

interface Named {
  Params: { name: string };
}

export function moduleRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const { db, config, meshKey, onEvent } = deps;

  app.post('/modules', async (request, reply): Promise<DoneAnswer> => {
    const { module, repository, ref } = parse(addModuleBody, request.body);
    refuseNoAddress(repository);
    await addModule(db, { name: module, repository, ref });
    await onEvent([module]);
    const isUnderWay = await nudgeAll(deps, [{ name: module, repository }]);
    reply.code(201);
    return { says: `${module} is tracked: ${ref} of ${repository} is read now`, isUnderWay };
  });

  app.delete<Named>('/modules/:name', async (request): Promise<DoneAnswer> => {
    const { why } = parse(removeBody, request.body);
    const module = await moduleNamed(deps, request.params.name);
    const { dependants } = await edgesOf(db, module.name);
    await removeModule(db, module.name, { who: request.who, why });
    // Its workflow finds no module any more and ends.
    const isUnderWay = await nudgeAll(deps, [module]);
    return { says: `${module.name} is no longer tracked; its nodes are told to remove it${goWithout(dependants)}`, isUnderWay };
  });

  app.post<Named>('/modules/:name/webhook', async (request): Promise<WebhookAnswer> => {
    const { name: module } = await moduleNamed(deps, request.params.name);
    const sealed = (await webhookModules(db)).find((one) => one.module === module)?.sealedSecret;
    let secret: string;
    if (sealed === undefined) {
      secret = randomBytes(32).toString('hex');
      await setWebhookSecret(db, module, sealWithMeshKey(meshKey, secret, webhookSubject(module)));
    } else {
      secret = openWithMeshKey(meshKey, sealed, webhookSubject(module));
    }
    const at = (forge: string): string => `${config.publicUrl}/hooks/${forge}`;
    return { module, secret, addresses: { github: at('github'), gitea: at('gitea'), gitlab: at('gitlab') } };
  });
}

function refuseNoAddress(repository: string): void {
  try {
    parseAddress(repository);
  } catch (error) {
    throw error instanceof UsageError ? new Problem(400, error.message) : error;
  }
}

/** What a sealed webhook secret is bound to. */
export function webhookSubject(module: string): string {
  return `webhook of module ${module}`;
}

/** What imported it does so still, and finds nothing there. */
function goWithout(dependants: readonly EdgeDetail[]): string {
  const [first] = dependants;
  if (first === undefined) return '';
  const others = dependants.length > 1 ? ` and ${dependants.length - 1} more` : '';
  return `; ${first.module}${others} imported it and ${dependants.length > 1 ? 'are' : 'is'} built without it: tally why ${first.module}`;
}

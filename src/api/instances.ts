/** What providers made for consumers: listed, shown, and given new secrets. */
import type { FastifyInstance } from 'fastify';
import { instanceStatuses, rotateInstance } from '../inventory';
import { createSealing } from '../link';
import { type DoneAnswer, removeBody } from '../schema/api';
import type { InstanceList, InstanceRow } from '../schema/wiringApi';
import type { ApiDeps } from './deps';
import { parse, unknown } from './problems';

interface Named {
  Params: { name: string };
}

export function instanceRoutes(app: FastifyInstance, deps: ApiDeps): void {
  const { db, meshKey } = deps;
  const sealing = createSealing(meshKey);

  app.get('/instances', async (): Promise<InstanceList> => ({ instances: await instanceStatuses(db) }));

  async function instanceNamed(name: string): Promise<InstanceRow> {
    const [found] = await instanceStatuses(db, { name });
    if (found !== undefined) return found;
    const all = await instanceStatuses(db);
    throw unknown(
      'instance',
      name,
      all.map((one) => one.name),
    );
  }

  app.get<Named>('/instances/:name', async (request): Promise<InstanceRow> => await instanceNamed(request.params.name));

  app.post<Named>('/instances/:name/rotate', async (request): Promise<DoneAnswer> => {
    const { why } = parse(removeBody, request.body);
    const { name, provider, providerNode, nodes } = await instanceNamed(request.params.name);
    await rotateInstance(db, sealing, name, { who: request.who, why });
    const holders = nodes.filter((node) => node !== providerNode);
    const then = holders.length === 0 ? '' : `, and ${holders.join(', ')} once they are in force there`;
    return { says: `${name} has new secrets: ${provider} on ${providerNode} is told them now${then}`, isUnderWay: true };
  });
}

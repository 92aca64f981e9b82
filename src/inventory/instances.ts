/** What providers make for consumers: read for a declaration, shown to operators, rotated. */
import type { Instance } from '../domain/provisioning';
import type { NodeFacts } from '../domain/references';
import type { Db } from './db';

export interface InstanceAt extends Instance {
  readonly id: string;
  readonly wants: string;
  readonly provider: string;
  readonly version: number;
}

export function placeKey(module: string, node: string): string {
  return `${module} ${node}`;
}

/** The first node of the consumer that holds it, by name. */
const FIRST_HOLDER = `cross join lateral (
  select jsonb_build_object('name', n.name, 'site', n.site, 'facts', n.facts) as node from binding b join node n on n.name = b.node
  where b.instance_id = i.id order by n.name limit 1
) holder`;

/** By `placeKey` of the provider, in the order of their names. */
export async function instancesOf(
  tx: Db,
  places: ReadonlyArray<{ readonly module: string; readonly node: string }>,
): Promise<Map<string, InstanceAt[]>> {
  if (places.length === 0) return new Map();
  const rows = await tx.query<InstanceAt & { at: string; consumerNode: NodeFacts }>(
    `select i.provider || ' ' || i.provider_node as at, i.id, i.name, i.wants, i.provider, i.version, i.consumer, i.parameters, holder.node as "consumerNode"
     from instance i ${FIRST_HOLDER}
     where (i.provider, i.provider_node) in (select * from unnest($1::text[], $2::text[])) order by i.name`,
    [places.map((place) => place.module), places.map((place) => place.node)],
  );
  const by = new Map<string, InstanceAt[]>();
  for (const { at, ...row } of rows) by.set(at, [...(by.get(at) ?? []), row]);
  return by;
}

import type { Db } from './db';

/** What placements claim, offer and are bound to. */
export interface Wiring {
  readonly claims: ReadonlyArray<{ readonly module: string; readonly node: string; readonly resource: string; readonly scope: string }>;
  readonly offers: ReadonlyArray<{ readonly module: string; readonly node: string; readonly name: string; readonly scope: string }>;
  readonly bindings: ReadonlyArray<{
    readonly module: string;
    readonly node: string;
    readonly name: string;
    readonly wants: string;
    readonly provider: string;
    readonly providerNode: string;
    /** An operator chose the provider. */
    readonly chosenBy: string | null;
    readonly instance: string | null;
    /** The provider's node has applied all that it is made from; of a presence always. */
    readonly isMade: boolean;
  }>;
}

/** Of one module on all its nodes, or of one node. */
export async function wiringOf(db: Db, of: { readonly module?: string; readonly node?: string }): Promise<Wiring> {
  const [row] = await db.query<Wiring>(
    `select
       (select coalesce(jsonb_agg(jsonb_build_object('module', module, 'node', node, 'resource', resource, 'scope', scope) order by node, module, resource), '[]')
        from claim where $1 in (module, '') and $2 in (node, '')) as claims,
       (select coalesce(jsonb_agg(jsonb_build_object('module', module, 'node', node, 'name', name, 'scope', scope) order by node, module, name), '[]')
        from offer where $1 in (module, '') and $2 in (node, '')) as offers,
       (select coalesce(jsonb_agg(jsonb_build_object('module', b.module, 'node', b.node, 'name', b.name, 'wants', b.wants, 'provider', b.provider,
          'providerNode', b.provider_node, 'chosenBy', c.chosen_by, 'instance', i.name, 'isMade', coalesce(i.made_version = i.version, true)) order by b.node, b.module, b.name), '[]')
        from binding b left join instance i on i.id = b.instance_id
        left join choice c on c.module = b.module and c.node = b.node and c.requirement in (b.name, 'any:' || b.provider)
        where $1 in (b.module, '') and $2 in (b.node, '')) as bindings`,
    [of.module ?? '', of.node ?? ''],
  );
  return row ?? { claims: [], offers: [], bindings: [] };
}

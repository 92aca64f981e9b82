/** What providers make for consumers: read for a declaration, shown to operators, rotated. */
import { ulid } from 'ulid';
import { UsageError } from '../domain/errors';
import type { Instance } from '../domain/provisioning';
import type { NodeFacts } from '../domain/references';
import type { NodeReport } from '../schema/messages';
import { credentialHolders, rotateCredentials, type Sealing } from './credentials';
import type { Db } from './db';
import { toJson } from './text';

export interface InstanceAt extends Instance {
  readonly id: string;
  readonly wants: string;
  readonly provider: string;
  readonly version: number;
  readonly binding: string;
  /** The consumer's node whose own it is; null: of all of its nodes. */
  readonly ownNode: string | null;
}

export function placeKey(module: string, node: string): string {
  return `${module} ${node}`;
}

/** The first node of the consumer that holds it, by name. */
export const FIRST_HOLDER = `cross join lateral (
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
    `select i.provider || ' ' || i.provider_node as at, i.id, i.name, i.wants, i.provider, i.version, i.consumer, i.binding, i.consumer_node as "ownNode", i.parameters, holder.node as "consumerNode"
     from instance i ${FIRST_HOLDER}
     where (i.provider, i.provider_node) in (select * from unnest($1::text[], $2::text[])) order by i.name`,
    [places.map((place) => place.module), places.map((place) => place.node)],
  );
  const by = new Map<string, InstanceAt[]>();
  for (const { at, ...row } of rows) by.set(at, [...(by.get(at) ?? []), row]);
  return by;
}

/**
 * Of a provider whose module does not hold as a whole: what it makes for others is made all the same, but for the parts that
 * failed. Only a report on what is wanted now says so.
 */
export async function settleParts(tx: Db, reports: readonly NodeReport[]): Promise<void> {
  const newest = [...new Map(reports.map((report) => [report.node, report])).values()];
  const said = newest.flatMap(({ node, modules }) =>
    modules.flatMap(({ module, digest, failedParts }) => (failedParts === undefined ? [] : [{ node, module, digest, failed: failedParts }])),
  );
  if (said.length === 0) return;
  await tx.query(
    `update instance i set made_version = i.included_version, made_secret_version = i.included_secret_version, made_at = coalesce(i.made_at, now())
     from jsonb_to_recordset($1::jsonb) s (node text, module text, digest text, failed jsonb)
     join placement p on p.module = s.module and p.node = s.node and p.want_digest = s.digest
     where i.provider = s.module and i.provider_node = s.node and i.made_version <> i.included_version and not s.failed ? i.name`,
    [toJson(said)],
  );
}

export interface InstanceStatus {
  readonly name: string;
  readonly wants: string;
  readonly provider: string;
  readonly providerNode: string;
  readonly consumer: string;
  readonly binding: string;
  /** Of the consumer, that hold it. */
  readonly nodes: readonly string[];
  readonly parameters: Readonly<Record<string, string>>;
  readonly createdAt: string;
  /** Null: the provider's node has not reported it yet. */
  readonly madeAt: string | null;
  /** What it should be made from is what the provider's node applied. */
  readonly isMade: boolean;
  readonly secrets: ReadonlyArray<{
    readonly name: string;
    readonly version: number;
    readonly madeAt: string;
    readonly holders: ReadonlyArray<{ readonly node: string; readonly version: number; readonly isApplied: boolean }>;
  }>;
}

/** In the order of their names; those of one module or with one name where that is given. */
export async function instanceStatuses(db: Db, of: { readonly name?: string; readonly module?: string } = {}): Promise<InstanceStatus[]> {
  const rows = await db.query<Omit<InstanceStatus, 'secrets'> & { id: string }>(
    `select i.id, i.name, i.wants, i.provider, i.provider_node as "providerNode", i.consumer, i.binding, i.parameters, iso(i.created_at) as "createdAt",
       iso(i.made_at) as "madeAt", i.made_version = i.version as "isMade",
       array(select b.node from binding b where b.instance_id = i.id order by b.node) as nodes
     from instance i
     where i.name = coalesce($1, i.name) and ($2::text is null or $2 in (i.provider, i.consumer)) order by i.name`,
    [of.name ?? null, of.module ?? null],
  );
  const secrets = await credentialHolders(
    db,
    rows.map((row) => row.id),
  );
  return rows.map(({ id, ...row }) => ({ ...row, secrets: secrets.filter((one) => one.owner === id).map(({ owner: _, ...secret }) => secret) }));
}

export interface UnmadeInstance {
  readonly instance: string;
  readonly provider: string;
  readonly providerNode: string;
  /** Of the consumer, that wait for it. */
  readonly nodes: readonly string[];
  /** At what the provider's node failed, as it reported last; where only parts failed, at this one. */
  readonly resource: string;
  readonly message: string;
  readonly reportedAt: string;
}

/** What a module waits for because the provider's node cannot make it. A host names the parts that failed in the order of its failures. */
export async function unmadeInstances(db: Db, consumer: string): Promise<UnmadeInstance[]> {
  return await db.query(
    `select i.name as instance, i.provider, i.provider_node as "providerNode", array(select b.node from binding b where b.instance_id = i.id order by b.node) as nodes,
       failure.resource, failure.message, iso(said.at) as "reportedAt"
     from instance i join node n on n.name = i.provider_node
     cross join lateral (
       select m.value as module, r.received_at as at from report r cross join jsonb_array_elements(r.body -> 'modules') m
       where r.node = n.name and r.epoch = n.epoch and m.value ->> 'module' = i.provider order by r.number desc limit 1
     ) said
     cross join lateral (
       select f.value ->> 'resource' as resource, f.value ->> 'message' as message
       from jsonb_array_elements(said.module -> 'failures') with ordinality f
       where said.module -> 'failedParts' is null or said.module -> 'failedParts' ->> (f.ordinality::int - 1) = i.name
       order by f.ordinality limit 1
     ) failure
     where i.consumer = $1 and i.made_version <> i.version order by i.name`,
    [consumer],
  );
}

/** New secrets: the provider's node is told them first, and who holds the instance once they are in force there. UsageError when there are none. */
export async function rotateInstance(
  db: Db,
  sealing: Sealing,
  name: string,
  { who, why }: { readonly who: string; readonly why: string },
): Promise<string[]> {
  return db.transaction(async (tx) => {
    const [row] = await tx.query<{ id: string; consumer: string; providerNode: string }>(
      'select id, consumer, provider_node as "providerNode" from instance where name = $1',
      [name],
    );
    if (row === undefined) throw new UsageError(`there is no instance ${name}: tally instance list`);
    const nodes = await rotateCredentials(tx, sealing, [row.id]);
    const [made] = await tx.query<{ version: number | null }>('select max(version) as version from credential where owner = $1', [row.id]);
    if (made?.version == null) throw new UsageError(`${name} has no secrets yet: there is nothing to rotate`);
    await tx.query('update instance set secret_version = $2, version = version + 1 where id = $1 and secret_version <> $2', [row.id, made.version]);
    await tx.query(`insert into intent (id, verb, module, node, who, why) values ($1, 'instance rotate', $2, $3, $4, $5)`, [
      ulid(),
      row.consumer,
      row.providerNode,
      who,
      why,
    ]);
    return nodes;
  });
}

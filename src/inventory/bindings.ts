/** How requirements are satisfied, written down: bindings, and the instances that providers make for them. */
import { createHash } from 'node:crypto';
import { ulid } from 'ulid';
import { instanceName } from '../domain/provisioning';
import type { Db } from './db';

export interface Bound {
  readonly module: string;
  readonly node: string;
  readonly kind: 'presence' | 'instantiation';
  readonly name: string;
  readonly wants: string;
  readonly provider: string;
  readonly providerNode: string;
  /** Of an instantiation. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Each node of the consumer has one of its own. */
  readonly isOwn: boolean;
}

interface InstanceRow {
  readonly id: string;
  readonly name: string;
  readonly isMade: boolean;
}

/** By node: what it waits for, where an instance is not made yet. */
type Unmade = ReadonlyMap<string, string>;

/** Those that are there already stay as they are; what is bound elsewhere of the same placements stays too. */
export async function writeBindings(tx: Db, bound: readonly Bound[]): Promise<Unmade> {
  if (bound.length === 0) return new Map();
  const rows = bound.map((one) => ({ ...one, consumerNode: one.isOwn ? one.node : null }));
  const instances = await writeInstances(
    tx,
    rows.filter((row) => row.kind === 'instantiation'),
  );
  const withIds = rows.map((row) => ({ ...row, instance: instances.get(keyOf(row))?.id ?? null }));
  await tx.query(
    `insert into binding (module, node, kind, name, wants, provider, provider_node, instance_id)
     select module, node, kind, name, wants, provider, "providerNode", instance
     from jsonb_to_recordset($1::jsonb) b (module text, node text, kind text, name text, wants text, provider text, "providerNode" text, instance text)
     on conflict (module, node, kind, name) do update set
       wants = excluded.wants, provider = excluded.provider, provider_node = excluded.provider_node, instance_id = excluded.instance_id
     where (binding.wants, binding.provider, binding.provider_node, binding.instance_id)
       is distinct from (excluded.wants, excluded.provider, excluded.provider_node, excluded.instance_id)`,
    [JSON.stringify(withIds)],
  );
  const unmade = withIds.flatMap((row): Array<[string, string]> => {
    const instance = instances.get(keyOf(row));
    if (instance === undefined || instance.isMade) return [];
    return [[row.node, `waits for ${row.provider} on ${row.providerNode} to make ${instance.name}`]];
  });
  return new Map(unmade);
}

/** On these nodes nothing but these bindings is in force any more; an instance that nobody holds goes with the last of them. */
export async function dropOtherBindings(tx: Db, module: string, bound: readonly Bound[], nodes: readonly string[]): Promise<void> {
  await tx.query(
    `delete from binding b where b.module = $1 and b.node = any ($2)
       and not exists (select from jsonb_to_recordset($3::jsonb) n (node text, kind text, name text) where (n.node, n.kind, n.name) = (b.node, b.kind, b.name))`,
    [module, nodes, JSON.stringify(bound)],
  );
}

interface Row extends Bound {
  readonly consumerNode: string | null;
}

function keyOf({ provider, providerNode, module, name, consumerNode }: Row): string {
  return [provider, providerNode, module, name, consumerNode ?? ''].join('\n');
}

/** One for each that is asked for, with the parameters of the consumer's first node by name. */
async function writeInstances(tx: Db, rows: readonly Row[]): Promise<Map<string, InstanceRow>> {
  if (rows.length === 0) return new Map();
  const wanted = new Map<string, Row>();
  for (const row of [...rows].sort((a, b) => (a.node < b.node ? -1 : 1))) if (!wanted.has(keyOf(row))) wanted.set(keyOf(row), row);
  const plain = [...wanted.values()].map((row) => nameOf(row, () => false));
  const taken = new Set((await tx.query<{ name: string }>('select name from instance where name = any ($1)', [plain])).map((row) => row.name));
  const asked = [...wanted.entries()].map(([key, row]) => {
    const name = nameOf(row, (one) => taken.has(one));
    taken.add(name);
    return { ...row, key, id: ulid(), binding: row.name, name };
  });
  const made = await tx.query<InstanceRow & { key: string }>(
    `with asked as (
       select * from jsonb_to_recordset($1::jsonb) a (key text, id text, name text, provider text, "providerNode" text, wants text, module text, node text,
         "consumerNode" text, binding text, parameters jsonb)
     ), there as (
       select a.key, i.id from asked a join instance i on i.provider = a.provider and i.provider_node = a."providerNode" and i.consumer = a.module
         and i.binding = a.binding and coalesce(i.consumer_node, '') = coalesce(a."consumerNode", '')
     ), fresh as (
       insert into instance (id, name, provider, provider_node, wants, consumer, consumer_node, binding, parameters)
       select id, name, provider, "providerNode", wants, module, "consumerNode", binding, parameters from asked where key not in (select key from there)
       returning id, name
     ), moved as (
       -- Of several nodes the first one says the parameters.
       update instance i set parameters = a.parameters, wants = a.wants, version = i.version + 1
       from there t join asked a using (key)
       where i.id = t.id and (i.parameters, i.wants) is distinct from (a.parameters, a.wants)
         and not exists (select from binding b where b.instance_id = i.id and b.node < a.node)
       returning i.id
     )
     select t.key, i.id, i.name, i.made_version = i.version and i.id not in (select id from moved) as "isMade" from there t join instance i using (id)
     union all
     select a.key, f.id, f.name, false from fresh f join asked a on a.id = f.id`,
    [JSON.stringify(asked)],
  );
  return new Map(made.map(({ key, ...row }) => [key, row]));
}

/** The name it has unless another one has it. */
export function plainNameOf(bound: Bound): string {
  return nameOf({ ...bound, consumerNode: bound.isOwn ? bound.node : null }, () => false);
}

function nameOf({ module, name, consumerNode }: Row, isTaken: (name: string) => boolean): string {
  return instanceName({ consumer: module, binding: name, node: consumerNode }, isTaken, digest);
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

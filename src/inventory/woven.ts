/** What is bound on a node and what is made there for others, as its declaration is derived with. */
import type { References } from '../domain/derive';
import { givenBy, provisionOf, valuesOfInstance } from '../domain/provisioning';
import type { NodeFacts } from '../domain/references';
import type { SealedSecret } from '../schema/declaration';
import { type InstanceResource, manifest } from '../schema/manifest';
import { type CredentialOf, ensureCredentials, type Sealing, sealFor } from './credentials';
import type { Db } from './db';
import { FIRST_HOLDER } from './instances';

interface Row {
  readonly id: string;
  readonly name: string;
  readonly wants: string;
  readonly provider: string;
  readonly providerNode: NodeFacts;
  /** Of the provider, at the build that is declared there. */
  readonly manifest: unknown;
  readonly version: number;
  readonly secretVersion: number;
  readonly madeSecretVersion: number;
  readonly consumer: string;
  readonly consumerNode: NodeFacts;
  readonly parameters: Record<string, string>;
  /** Null: made here for others; else bound here by this name. */
  readonly binding: string | null;
}

type Wanted = CredentialOf & { readonly version: number };
type Secrets = Record<string, Wanted>;

interface Part {
  readonly module: string;
  /** Of the instance. */
  readonly name: string;
  readonly values: Record<string, string>;
  readonly secrets: Secrets;
  /** Of what is made here. */
  readonly resources: readonly InstanceResource[] | null;
}

export interface WovenModule extends References {
  readonly instances: ReadonlyArray<References & { readonly name: string; readonly resources: readonly InstanceResource[] }>;
}

export interface Woven {
  readonly modules: ReadonlyMap<string, WovenModule>;
  /** What the derivation has of the instances made here. */
  readonly included: ReadonlyArray<{ readonly id: string; readonly version: number; readonly secretVersion: number }>;
}

export interface SealedFor {
  readonly mesh: string;
  readonly node: string;
  readonly sealKey: string | null;
}

/** Secrets are made here at the latest, and sealed to the node's key: newest for who makes, for who holds what was made last. */
export async function readWoven(tx: Db, sealing: Sealing, to: SealedFor): Promise<Woven> {
  const rows = await readRows(tx, to.node);
  const parts = rows.flatMap((row): Part[] => {
    const read = manifest.safeParse(row.manifest);
    const provision = read.success ? provisionOf(read.data, row.wants) : null;
    if (provision === null) return [];
    if (row.binding !== null) return [boundPart(row, row.binding, givenBy(provision, row, row.providerNode, to.node))];
    const secrets = Object.fromEntries(
      provision.secrets.map((name): [string, Wanted] => [`secret.${name}`, { owner: row.id, name, version: row.secretVersion }]),
    );
    return [{ module: row.provider, name: row.name, values: valuesOfInstance(provision, row, to.node), secrets, resources: provision.resources }];
  });
  const wanted = parts.flatMap((part) => Object.values(part.secrets));
  await ensureCredentials(tx, sealing, wanted);
  const sealed = await sealFor(tx, sealing, to, wanted);
  const bySecret = new Map(wanted.map((one, i): [Wanted, SealedSecret | null] => [one, sealed[i] ?? null]));
  return {
    modules: woven(parts, (one) => bySecret.get(one) ?? null),
    included: rows.flatMap(({ id, version, secretVersion, binding }) => (binding === null ? [{ id, version, secretVersion }] : [])),
  };
}

function boundPart(row: Row, binding: string, { values, secrets }: ReturnType<typeof givenBy>): Part {
  const version = row.madeSecretVersion === 0 ? row.secretVersion : row.madeSecretVersion;
  return {
    module: row.consumer,
    name: row.name,
    values: Object.fromEntries(Object.entries(values).map(([key, value]) => [`bind.${binding}.${key}`, value])),
    secrets: Object.fromEntries(
      Object.entries(secrets).map(([key, name]): [string, Wanted] => [`bind.${binding}.${key}`, { owner: row.id, name, version }]),
    ),
    resources: null,
  };
}

function woven(parts: readonly Part[], sealedOf: (one: Wanted) => SealedSecret | null): Map<string, WovenModule> {
  const modules = new Map<
    string,
    { values: Record<string, string>; secrets: Record<string, SealedSecret | null>; instances: WovenModule['instances'][number][] }
  >();
  for (const { module, name, values, secrets, resources } of parts) {
    const one = modules.get(module) ?? { values: {}, secrets: {}, instances: [] };
    modules.set(module, one);
    const sealed = Object.fromEntries(Object.entries(secrets).map(([key, wanted]) => [key, sealedOf(wanted)]));
    if (resources !== null) one.instances.push({ name, values, secrets: sealed, resources });
    else {
      Object.assign(one.values, values);
      Object.assign(one.secrets, sealed);
    }
  }
  return modules;
}

async function readRows(tx: Db, node: string): Promise<Row[]> {
  return tx.query<Row>(
    `with here as (
       select id, null as binding from instance where provider_node = $1
       union all
       select instance_id, name from binding where node = $1 and instance_id is not null
     )
     select i.id, i.name, i.wants, i.provider, jsonb_build_object('name', n.name, 'site', n.site, 'facts', n.facts) as "providerNode", pi.manifest,
       i.version, i.secret_version as "secretVersion", i.made_secret_version as "madeSecretVersion", i.consumer, holder.node as "consumerNode", i.parameters, h.binding
     from here h join instance i using (id) join node n on n.name = i.provider_node
     join placement p on p.module = i.provider and p.node = i.provider_node
     join build b on b.id = p.build_id join inspection pi on pi.module = b.module and pi.commit = b.commit
     ${FIRST_HOLDER}
     order by i.name, h.binding nulls first`,
    [node],
  );
}

/** What the node is about to be told; made it is once the provider's module has applied that. */
export async function recordIncluded(tx: Db, node: string, { included }: Woven): Promise<void> {
  if (included.length === 0) return;
  await tx.query(
    `update instance i set included_version = n.version, included_secret_version = n."secretVersion"
     from jsonb_to_recordset($1::jsonb) n (id text, version bigint, "secretVersion" int) where i.id = n.id and i.included_version <> n.version`,
    [JSON.stringify(included)],
  );
  await tx.query('select settle_made($1)', [[node]]);
}

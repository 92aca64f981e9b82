/** Which module is on which node. Placing is refused, with nothing written, where it would take what another has or lack what it requires. */
import { ulid } from 'ulid';
import { UsageError } from '../domain/errors';
import { bindingNameOf } from '../domain/provisioning';
import { referencesIn } from '../domain/references';
import type { Manifest } from '../schema/manifest';
import type { Db } from './db';
import { lockNodes } from './locks';
import { lockProvisioning, nodesAround, refreshProviders, settle } from './provisioning';
import { manifestOfModule, readPlacements } from './surroundings';

export interface Intent {
  readonly who: string;
  readonly why: string;
}

/** `requirement` null: for whatever that provider provides. `node` null: wherever it is alone. */
export interface Use {
  readonly requirement: string | null;
  readonly provider: string;
  readonly node: string | null;
}

/** False when it was assigned already. UsageError when there is no such module or node, or it cannot be there. */
export async function assign(db: Db, module: string, node: string, { who, why }: Intent, uses: readonly Use[] = []): Promise<boolean> {
  return db.transaction(async (tx) => {
    await lockProvisioning(tx);
    await mustExist(tx, module, node);
    const manifest = await manifestOfModule(tx, module);
    await lockNodes(tx, manifest === null ? [node] : [node, ...(await nodesAround(tx, module, manifest, [node]))]);
    const added = await tx.query('insert into placement (module, node, assigned_by) values ($1, $2, $3) on conflict do nothing returning node', [
      module,
      node,
      who,
    ]);
    await choose(tx, module, node, who, uses, manifest);
    if (added.length > 0 || uses.length > 0) await settleOne(tx, module, node, manifest, added.length > 0);
    if (added.length > 0) await recordAssignment(tx, 'assign', module, node, { who, why });
    return added.length > 0;
  });
}

/** One that was not inspected yet is looked at when it is declared. */
async function settleOne(tx: Db, module: string, node: string, manifest: Manifest | null, isNew: boolean): Promise<void> {
  if (manifest === null) return;
  const settled = (await settle(tx, { module, manifest, nodes: [node], isNew })).get(node);
  if (settled?.kind === 'refused') throw new UsageError(`${module} is not placed on ${node}: ${settled.reason}`);
}

async function choose(tx: Db, module: string, node: string, who: string, uses: readonly Use[], manifest: Manifest | null): Promise<void> {
  if (uses.length === 0) return;
  const names = manifest?.requires.map((need) => ('presence' in need ? need.presence : bindingNameOf(need)));
  const strange = uses.find(({ requirement }) => requirement !== null && names?.includes(requirement) === false);
  if (strange !== undefined)
    throw new UsageError(
      `${module} requires nothing as ${strange.requirement} to use ${strange.provider} for: it requires ${names?.join(', ') || 'nothing'}`,
    );
  const [unknown] = await tx.query<{ provider: string }>(
    'select u.provider from unnest($1::text[]) u (provider) where not exists (select from module where name = u.provider) limit 1',
    [uses.map((use) => use.provider)],
  );
  if (unknown !== undefined) throw new UsageError(`there is no module ${unknown.provider} to use: tally module list`);
  const [nowhere] = await tx.query<{ node: string }>(
    'select u.node from unnest($1::text[]) u (node) where u.node is not null and not exists (select from node where name = u.node) limit 1',
    [uses.map((use) => use.node)],
  );
  if (nowhere !== undefined) throw new UsageError(`there is no node ${nowhere.node} to use a provider on: tally node list`);
  const [bound] = await tx.query<{ name: string; provider: string; providerNode: string }>(
    `select b.name, b.provider, b.provider_node as "providerNode"
     from binding b join jsonb_to_recordset($3::jsonb) u (requirement text, provider text, node text) on u.requirement = b.name
     where b.module = $1 and b.node = $2 and (u.provider <> b.provider or u.node <> b.provider_node) limit 1`,
    [module, node, JSON.stringify(uses)],
  );
  if (bound !== undefined) {
    throw new UsageError(
      `${bound.name} of ${module} on ${node} is provided by ${bound.provider} on ${bound.providerNode} already: tally unassign ${module} ${node}, then assign it with --use`,
    );
  }
  await tx.query(
    `insert into choice (module, node, requirement, provider, provider_node, chosen_by)
     select $1, $2, coalesce(requirement, 'any:' || provider), provider, node, $4 from jsonb_to_recordset($3::jsonb) u (requirement text, provider text, node text)
     on conflict (module, node, requirement) do update set
       provider = excluded.provider, provider_node = excluded.provider_node, chosen_by = excluded.chosen_by, chosen_at = now()`,
    [module, node, JSON.stringify(uses), who],
  );
}

/** False when it was not assigned. UsageError when there is no such module or node, or others need it there. */
export async function unassign(db: Db, module: string, node: string, { who, why }: Intent): Promise<boolean> {
  return db.transaction(async (tx) => {
    await lockProvisioning(tx);
    await mustExist(tx, module, node);
    await refuseIfNeeded(tx, { module, node });
    const bound = await providersOf(tx, { module, node });
    await lockNodes(tx, [node, ...bound.map((one) => one.providerNode)]);
    const removed = await tx.query('delete from placement where module = $1 and node = $2 returning node', [module, node]);
    await refreshProviders(tx, bound);
    if (removed.length > 0) await recordAssignment(tx, 'unassign', module, node, { who, why });
    return removed.length > 0;
  });
}

/**
 * Merged into the facts that are there; an empty value takes the fact away. UsageError, and nothing is set, where a module
 * of the node would then take what another has or lack what it requires.
 */
export async function setFacts(db: Db, node: string, facts: Readonly<Record<string, string>>): Promise<void> {
  await db.transaction(async (tx) => {
    await lockProvisioning(tx);
    const placed = await tx.query<{ module: string; around: string }>(
      `select p.module, p.node as around from placement p where p.node = $1
       union select b.module, b.provider_node from binding b where b.node = $1
       union select b.provider, b.node from binding b where b.provider_node = $1`,
      [node],
    );
    await lockNodes(tx, [node, ...placed.map((one) => one.around)]);
    const set = await tx.query(
      `update node set facts = (select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(facts || $2::jsonb) where value <> '""') where name = $1 returning name`,
      [node, JSON.stringify(facts)],
    );
    if (set.length === 0) throw new UsageError(`there is no node ${node}: tally node list`);
    const names = new Set(Object.keys(facts).flatMap((key) => [`facts.${key}`, ...(key === 'address' ? ['node.address'] : [])]));
    const here = await readPlacements(
      tx,
      placed.map(({ module }) => ({ module, node })),
    );
    // As many as name one of these facts: a few, whatever the size of the mesh.
    for (const { module, manifest } of here) {
      if (!referencesIn(manifest).some((name) => names.has(name))) continue;
      const settled = (await settle(tx, { module, manifest, nodes: [node], isNew: false })).get(node);
      if (settled?.kind === 'refused') throw new UsageError(`${Object.keys(facts).join(', ')} of ${node} is left as it is: ${settled.reason}`);
    }
  });
}

/** What others require is not taken away under them; either part may be null for any. UsageError names them. */
export async function refuseIfNeeded(tx: Db, { module, node }: { readonly module: string | null; readonly node: string | null }): Promise<void> {
  const rows = await tx.query<{ consumer: string; on: string; wants: string; provider: string; providerNode: string }>(
    `select b.module as consumer, b.node as on, b.wants, b.provider, b.provider_node as "providerNode" from binding b
     where b.provider = coalesce($1, b.provider) and b.provider_node = coalesce($2, b.provider_node)
       and ($1::text is null or b.module <> $1) and ($2::text is null or $1 is not null or b.node <> $2)
     order by b.module, b.node limit 4`,
    [module, node],
  );
  const [first] = rows;
  if (first === undefined) return;
  const names = rows.slice(0, 3).map((row) => `${row.consumer} on ${row.on}`);
  const more = rows.length > 3 ? ' and others' : '';
  throw new UsageError(
    `${first.provider} on ${first.providerNode} provides ${first.wants}, which ${names.join(', ')}${more} require${rows.length === 1 ? 's' : ''}: tally unassign ${first.consumer} ${first.on} first`,
  );
}

/** Who makes something for these placements: what it takes on its node is less once they are gone. Either part may be null for any. */
export async function providersOf(tx: Db, { module, node }: { readonly module: string | null; readonly node: string | null }): Promise<Provider[]> {
  return tx.query(
    `select kind, provider, provider_node as "providerNode" from binding where module = coalesce($1, module) and node = coalesce($2, node)`,
    [module, node],
  );
}

interface Provider {
  readonly kind: 'presence' | 'instantiation';
  readonly provider: string;
  readonly providerNode: string;
}

async function mustExist(tx: Db, module: string, node: string): Promise<void> {
  const [row] = await tx.query<{ module: boolean; node: boolean }>(
    'select exists (select from module where name = $1) as module, exists (select from node where name = $2) as node',
    [module, node],
  );
  if (row?.module !== true) throw new UsageError(`there is no module ${module}: tally module list`);
  if (!row.node) throw new UsageError(`there is no node ${node}: tally node list`);
}

async function recordAssignment(tx: Db, verb: 'assign' | 'unassign', module: string, node: string, { who, why }: Intent): Promise<void> {
  await tx.query('insert into intent (id, verb, module, node, who, why) values ($1, $2, $3, $4, $5, $6)', [ulid(), verb, module, node, who, why]);
}

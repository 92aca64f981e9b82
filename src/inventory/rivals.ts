/** Who else takes what a placement takes; and what each placement takes, written down so that this is one question. */
import { collidingWith, conflictBetween, type Holder, shownBy } from '../domain/claims';
import { type Instance, provisionOf, valuesOfInstance } from '../domain/provisioning';
import { fillIn, type NodeFacts, ofNode } from '../domain/references';
import type { Manifest } from '../schema/manifest';
import type { Db } from './db';

export interface Made extends Instance {
  readonly wants: string;
}

/** What a module takes on a node, with what it makes there for others. */
export function holderOf(module: string, manifest: Manifest, node: NodeFacts, made: readonly Made[], reliesOn: readonly string[]): Holder {
  const known = ofNode(node);
  const claims = manifest.claims.flatMap(({ resource, scope }) => {
    const found = fillIn(resource, known);
    return 'text' in found ? [{ resource: found.text, scope }] : [];
  });
  const shows = [...shownBy(manifest.resources, known), ...made.flatMap((instance) => shownForInstance(manifest, node, instance))];
  return { module, node: node.name, site: node.site, claims, shows: [...new Set(shows)].sort(), reliesOn };
}

function shownForInstance(manifest: Manifest, node: NodeFacts, instance: Made): string[] {
  const provision = provisionOf(manifest, instance.wants);
  if (provision === null) return [];
  const own = valuesOfInstance(provision, instance, node.name);
  const ofProvider = ofNode(node);
  return shownBy(provision.resources, (name) => own[name] ?? ofProvider(name));
}

/** Two consumers for whom one provider would make the same thing; null when each gets its own. */
export function clashAmong(module: string, manifest: Manifest, node: NodeFacts, made: readonly Made[]): string | null {
  const owners = new Map<string, Made>();
  for (const instance of made) {
    const shows = shownForInstance(manifest, node, instance);
    for (const target of collidingWith(shows)) {
      const other = owners.get(target);
      if (other !== undefined && other.name !== instance.name && /^(path|service)\//.test(target)) {
        const isOne = other.consumer === instance.consumer;
        const [one, two] = (isOne ? [other.name, instance.name] : [other.consumer, instance.consumer]).sort();
        return `${one} and ${two}${isOne ? ` of ${instance.consumer}` : ''} would both have ${module} on ${node.name} make ${wordsOf(target)}: give one of them other parameters`;
      }
    }
    for (const shown of shows) if (!shown.startsWith('under/')) owners.set(shown, instance);
  }
  return null;
}

/** A provider on its node as far as one instance goes. */
export function makerOf(module: string, manifest: Manifest, node: NodeFacts, instance: Made): Holder {
  return { module, node: node.name, site: node.site, claims: [], shows: shownForInstance(manifest, node, instance), reliesOn: [] };
}

/** Where providers would make what other modules of their nodes have: by place in the list. Else nothing could be worked out for the whole node. */
export async function findRivalsOfMakers(tx: Db, makers: readonly Holder[]): Promise<Map<number, string>> {
  const rivals = await readRivals(tx, null, makers);
  const found = new Map<number, string>();
  for (const [i, maker] of makers.entries()) {
    const conflict = rivals.filter((rival) => rival.node === maker.node).map((rival) => conflictBetween(maker, rival));
    const first = conflict.find((one) => one !== null);
    if (first != null) found.set(i, first.says);
  }
  return found;
}

function wordsOf(target: string): string {
  return target.startsWith('path/') ? target.slice('path'.length) : target.replace('/', ' ');
}

/** For each of these, by node, the first one that it cannot be beside. */
export async function findRivals(tx: Db, holders: readonly Holder[]): Promise<Map<string, string>> {
  const [first] = holders;
  if (first === undefined) return new Map();
  const rivals = await readRivals(tx, first.module, holders);
  const byNode = new Map<string, Holder[]>();
  for (const rival of rivals) byNode.set(rival.node, [...(byNode.get(rival.node) ?? []), rival]);
  const claimants = rivals.filter((rival) => rival.claims.length > 0);
  const found = new Map<string, string>();
  const placed: Holder[] = [];
  for (const holder of holders) {
    const apart = holder.claims.some((claim) => claim.scope !== 'node') ? placed : [];
    const near = holder.claims.length > 0 ? [...(byNode.get(holder.node) ?? []), ...claimants, ...apart] : (byNode.get(holder.node) ?? []);
    const conflict = near.map((rival) => conflictBetween(holder, rival)).find((one) => one !== null);
    if (conflict == null) placed.push(holder);
    else found.set(holder.node, conflict.says);
  }
  return found;
}

/** @param module null: these are of several modules, and what is theirs comes with the others. */
async function readRivals(tx: Db, module: string | null, holders: readonly Holder[]): Promise<Holder[]> {
  const nodes = holders.map((holder) => holder.node);
  const claimed = [...new Set(holders.flatMap((holder) => holder.claims.map((claim) => claim.resource)))];
  const shown = [...new Set([...holders.flatMap((holder) => collidingWith(holder.shows)), ...claimed])];
  if (shown.length === 0) return [];
  return tx.query<Holder>(
    `with near as (
       select module, node from placement where node = any ($2) and module is distinct from $1 and shows && $3
       union
       select module, node from claim where resource = any ($4) and not (module is not distinct from $1 and node = any ($2))
     )
     select p.module, p.node, n.site, p.shows,
       coalesce((select jsonb_agg(jsonb_build_object('resource', c.resource, 'scope', c.scope)) from claim c where (c.module, c.node) = (p.module, p.node)), '[]') as claims,
       array(select distinct b.provider from binding b where (b.module, b.node) = (p.module, p.node)) as "reliesOn"
     from near join placement p using (module, node) join node n on n.name = p.node order by p.module, p.node`,
    [module, nodes, shown, claimed],
  );
}

/**
 * Claims, and what is shown, stand for what is declared or about to be; `keeps`: what was before is held beside it.
 * A claim that is gone lets others be looked at again.
 */
export async function writeHolders(tx: Db, holders: readonly Holder[], keeps: ReadonlySet<string>): Promise<void> {
  await writeShows(tx, holders, keeps);
  const claims = holders.flatMap(({ module, node, claims: own }) => own.map((claim) => ({ module, node, ...claim })));
  const settled = holders.filter((holder) => !keeps.has(holder.node));
  await tx.query(
    `delete from claim c using unnest($1::text[], $2::text[]) h (module, node)
     where (c.module, c.node) = (h.module, h.node)
       and not exists (select from jsonb_to_recordset($3::jsonb) n (module text, node text, resource text) where (n.module, n.node, n.resource) = (c.module, c.node, c.resource))`,
    [settled.map((holder) => holder.module), settled.map((holder) => holder.node), JSON.stringify(claims)],
  );
  if (claims.length === 0) return;
  await tx.query(
    `insert into claim (module, node, resource, scope) select module, node, resource, scope from jsonb_to_recordset($1::jsonb) c (module text, node text, resource text, scope text)
     on conflict (module, node, resource) do update set scope = excluded.scope where claim.scope <> excluded.scope`,
    [JSON.stringify(claims)],
  );
}

export async function writeShows(tx: Db, holders: readonly Holder[], keeps: ReadonlySet<string>): Promise<void> {
  const rows = holders.map(({ module, node, claims, shows }) => ({
    module,
    node,
    shows: [...new Set([...shows, ...claims.map((claim) => claim.resource)])],
  }));
  await tx.query(
    `update placement p set shows = h.shows
     from (
       select p.module, p.node, case when p.node = any ($2) then array(select distinct unnest(p.shows || h.shows) order by 1) else h.shows end as shows
       from jsonb_to_recordset($1::jsonb) h (module text, node text, shows text[]) join placement p using (module, node)
     ) h
     where (p.module, p.node) = (h.module, h.node) and p.shows is distinct from h.shows`,
    [JSON.stringify(rows), [...keeps]],
  );
}

/** What stands around placements: their nodes, who offers what they require, and how it was satisfied before. */
import type { Candidate, Choice } from '../domain/provisioning';
import type { NodeFacts } from '../domain/references';
import { type Manifest, manifest } from '../schema/manifest';
import type { Db } from './db';

type Kind = 'presence' | 'instantiation';

export interface Offered extends Candidate {
  readonly kind: Kind;
  readonly name: string;
}

export interface Placed {
  readonly module: string;
  readonly node: NodeFacts;
  readonly manifest: Manifest;
}

export interface Surroundings {
  readonly offers: readonly Offered[];
  /** By node and requirement; `any:PROVIDER` where an operator named no requirement. */
  readonly choices: ReadonlyMap<string, Choice>;
  readonly before: ReadonlyMap<string, Choice>;
}

/** The manifest that a placement is at: of its declared build, else of what would be declared, else of the head. */
const MANIFEST_OF = `
  left join build db on db.id = p.build_id
  left join inspection di on di.module = db.module and di.commit = db.commit
  left join build eb on eb.id = m.effective_build
  left join inspection ei on ei.module = m.name and ei.commit = eb.commit
  left join inspection hi on hi.module = m.name and hi.commit = m.head_commit and hi.outcome = 'valid'`;

/** Null: it has not been inspected, or cannot be read any more. */
export async function manifestOfModule(tx: Db, module: string): Promise<Manifest | null> {
  const [row] = await tx.query<{ manifest: unknown }>(
    `select coalesce(ei.manifest, hi.manifest) as manifest from module m left join placement p on false ${MANIFEST_OF} where m.name = $1`,
    [module],
  );
  return parsed(row?.manifest);
}

export async function manifestOfBuild(tx: Db, module: string, build: string): Promise<Manifest | null> {
  const [row] = await tx.query<{ manifest: unknown }>(
    'select i.manifest from build b join inspection i on i.module = b.module and i.commit = b.commit where b.id = $2 and b.module = $1',
    [module, build],
  );
  return parsed(row?.manifest);
}

function parsed(written: unknown): Manifest | null {
  const read = manifest.safeParse(written);
  return read.success ? read.data : null;
}

/** Those of these nodes that the module is placed on. */
export async function readNodes(tx: Db, module: string, nodes: readonly string[]): Promise<NodeFacts[]> {
  return tx.query(
    'select n.name, n.site, n.facts from placement p join node n on n.name = p.node where p.module = $1 and p.node = any ($2) order by n.name',
    [module, nodes],
  );
}

/** Placements with their manifests; one whose manifest cannot be read is left out. */
export async function readPlacements(tx: Db, of: ReadonlyArray<{ readonly module: string; readonly node: string }>): Promise<Placed[]> {
  if (of.length === 0) return [];
  const rows = await tx.query<{ module: string; node: NodeFacts; manifest: unknown }>(
    `select p.module, jsonb_build_object('name', n.name, 'site', n.site, 'facts', n.facts) as node, coalesce(di.manifest, ei.manifest, hi.manifest) as manifest
     from placement p join module m on m.name = p.module join node n on n.name = p.node ${MANIFEST_OF}
     where (p.module, p.node) in (select * from unnest($1::text[], $2::text[])) order by p.module, p.node`,
    [of.map((one) => one.module), of.map((one) => one.node)],
  );
  return rows.flatMap(({ module, node, manifest: written }) => {
    const read = parsed(written);
    return read === null ? [] : [{ module, node, manifest: read }];
  });
}

export async function readSurroundings(tx: Db, module: string, { requires }: Manifest, nodes: readonly string[]): Promise<Surroundings> {
  if (requires.length === 0) return { offers: [], choices: new Map(), before: new Map() };
  const kinds = requires.map((need): Kind => ('presence' in need ? 'presence' : 'instantiation'));
  const names = requires.map((need) => ('presence' in need ? need.presence : need.instantiation));
  const offers = await tx.query<Offered>(
    `select o.kind, o.name, o.module, o.node, o.scope, n.site from offer o join node n on n.name = o.node
     where (o.kind, o.name) in (select * from unnest($1::text[], $2::text[])) and o.module <> $3 order by o.module, o.node`,
    [kinds, names, module],
  );
  const choices = await tx.query<Choice & { at: string }>(
    `select node || ' ' || requirement as at, provider, provider_node as node from choice where module = $1 and node = any ($2)`,
    [module, nodes],
  );
  const before = await tx.query<Choice & { at: string }>(
    `select node || ' ' || kind || ' ' || name as at, provider, provider_node as node from binding where module = $1 and node = any ($2)`,
    [module, nodes],
  );
  return {
    offers,
    choices: new Map(choices.map(({ at, provider, node }) => [at, { provider, node }])),
    before: new Map(before.map(({ at, provider, node }) => [at, { provider, node }])),
  };
}

/** Modules that would provide what nobody in reach does, by kind and name. Reads every manifest: for a refusal alone. */
export async function readKnown(tx: Db, module: string, { requires }: Manifest): Promise<Map<string, readonly string[]>> {
  const names = requires.map((need) => ('presence' in need ? need.presence : need.instantiation));
  const known = await tx.query<{ of: string; modules: string[] }>(
    `select given.kind || ' ' || (given.value ->> given.kind) as of, array_agg(distinct m.name order by m.name) as modules
     from module m
     left join build eb on eb.id = m.effective_build
     join inspection i on i.module = m.name and i.commit = coalesce(eb.commit, m.head_commit) and i.outcome = 'valid'
     cross join lateral (
       select value, case when value ? 'presence' then 'presence' else 'instantiation' end as kind from jsonb_array_elements(i.manifest -> 'provides')
     ) given
     where m.name <> $1 and i.manifest ? 'provides' and given.value ->> given.kind = any ($2) group by 1`,
    [module, names],
  );
  return new Map(known.map(({ of, modules }) => [of, modules]));
}

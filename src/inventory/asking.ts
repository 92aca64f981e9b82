/** The graph as people ask about it: edges in force with their evidence, and what a change reaches. Set-based, O(what is asked about). */
import type { DeclarePolicy, Iso } from '../domain/facts';
import { neighbours as inputsAndDependants, pathBetween } from '../domain/graph';
import type { Db } from './db';

export interface EdgeEvidence {
  readonly language: string;
  readonly name: string;
  readonly artifact: string;
  readonly file: string;
  readonly line: number;
  readonly isTest: boolean;
}

/** One module on another, however many names of it are imported. */
export interface EdgeDetail {
  readonly module: string;
  readonly input: string;
  /** Only tests import it. */
  readonly isTest: boolean;
  /** The first five, code before tests. */
  readonly evidence: readonly EdgeEvidence[];
  readonly names: number;
}

/** Goes after `from …` and needs the table's alias to be `e`. */
const EDGE = `e.module, e.input, bool_and(e.is_test) as "isTest", count(distinct (e.language, e.name))::int as names,
  to_jsonb((array_agg(jsonb_build_object('language', e.language, 'name', e.name, 'artifact', e.artifact, 'file', e.file, 'line', e.line, 'isTest', e.is_test)
    order by e.is_test, e.file, e.line, e.name))[1:5]) as evidence`;
const GROUPED = 'group by e.module, e.input order by e.module, e.input';

/** All edges in force. */
export async function allEdges(db: Db): Promise<EdgeDetail[]> {
  return await db.query(`select ${EDGE} from build_edge e ${GROUPED}`);
}

/** What the modules build on at whatever distance (outbound), or what builds on them (inbound). */
export async function edgesFrom(db: Db, modules: readonly string[], direction: 'outbound' | 'inbound'): Promise<EdgeDetail[]> {
  const [from, to] = direction === 'outbound' ? ['module', 'input'] : ['input', 'module'];
  return await db.query(
    `with recursive reached(name) as (
       select unnest($1::text[])
       union
       select e.${to} from reached r join build_edge e on e.${from} = r.name
     )
     select ${EDGE} from build_edge e join reached r on r.name = e.${from} ${GROUPED}`,
    [modules],
  );
}

/** An edge with its first place alone. */
export interface EdgeStep {
  readonly module: string;
  readonly input: string;
  readonly isTest: boolean;
  readonly evidence: ReadonlyArray<{ readonly file: string; readonly line: number }>;
}

/** What builds on what moves, at whatever distance: on one module, or on all that are about to have another artifact. */
export async function reachedEdges(db: Db, supposed: string | null): Promise<EdgeStep[]> {
  const rows = await db.query<{ module: string; input: string; isTest: boolean; file: string; line: number }>(
    `with recursive reached(name) as (
       select m.name from module m
       where case when $1::text is null then m.next in ('inspect', 'build') or (m.next = 'wait' and m.stale_since is not null) else m.name = $1 end
       union
       select e.module from reached r join build_edge e on e.input = r.name
     )
     select distinct on (e.module, e.input) e.module, e.input, e.is_test as "isTest", e.file, e.line
     from build_edge e join reached r on r.name = e.input order by e.module, e.input, e.is_test, e.file, e.line`,
    [supposed],
  );
  return rows.map(({ file, line, ...edge }) => ({ ...edge, evidence: [{ file, line }] }));
}

/** The edges of one module itself. */
export async function edgesOf(db: Db, module: string): Promise<{ inputs: EdgeDetail[]; dependants: EdgeDetail[] }> {
  const edges = await db.query<EdgeDetail>(`select ${EDGE} from build_edge e where e.module = $1 or e.input = $1 ${GROUPED}`, [module]);
  return { inputs: edges.filter((edge) => edge.module === module), dependants: edges.filter((edge) => edge.input === module) };
}

/** The way along build edges from a module back to itself, first and last the same; null where there is none, whatever its head is. */
export async function cycleThrough(db: Db, module: string): Promise<string[] | null> {
  const edges = await db.query<{ module: string; input: string }>(
    `with recursive reached(name) as (
       select m.name from module m where m.name = $1 and m.is_in_cycle
       union
       select e.input from reached r join build_edge e on e.module = r.name and not e.is_test
     )
     select distinct e.module, e.input from build_edge e join reached r on r.name = e.module where not e.is_test`,
    [module],
  );
  return pathBetween(module, module, inputsAndDependants(edges).inputs);
}

export interface ModuleNames {
  readonly exports: ReadonlyArray<{
    readonly language: string;
    readonly name: string;
    readonly artifact: string;
    readonly file: string;
    readonly line: number;
    readonly state: 'carried' | 'kept' | 'awaited';
  }>;
  /** Imports of the module that no module exports. */
  readonly outside: number;
  readonly unknown: ReadonlyArray<{ readonly kind: 'unparsed' | 'computed'; readonly file: string; readonly line: number; readonly reason: string }>;
}

/** What the code of a module exports, and what of its imports is no edge. */
export async function moduleNames(db: Db, module: string): Promise<ModuleNames> {
  const [row] = await db.query<ModuleNames>(
    `select
       (select coalesce(jsonb_agg(to_jsonb(x) order by x.language, x.name, x.artifact), '[]') from (
          select e.language, e.name, e.artifact, e.file, e.line, case when e.is_awaited then 'awaited' else 'carried' end as state from module_export e
          where e.module = m.name and not exists (select from kept_export k where (k.module, k.language, k.name) = (e.module, e.language, e.name))
          union all
          select k.language, k.name, k.artifact, x.file, x.line, 'kept' from kept_export k
          join build b on b.id = m.effective_build join inspection i on i.module = m.name and i.commit = b.commit
          cross join lateral (
            select x.file, x.line from jsonb_to_recordset(i.exports) x (language text, name text, file text, line int)
            where (x.language, x.name) = (k.language, k.name) order by x.file, x.line limit 1) x
          where k.module = m.name) x) as exports,
       (select count(distinct (i.language, i.name))::int from module_import i
        where i.module = m.name and not exists (select from build_edge e where e.module = i.module and e.language = i.language and e.name = any (i.candidates))) as outside,
       coalesce((select n.unknown from inspection n where n.module = m.name and n.commit = m.edges_commit), '[]') as unknown
     from module m where m.name = $1`,
    [module],
  );
  return row ?? { exports: [], outside: 0, unknown: [] };
}

/** An import that nobody exports, in the head of a module that no build was fit without, and modules that never could be read. */
export interface Unknown {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly modules: ReadonlyArray<{ readonly module: string; readonly is: 'unreadable' | 'invalid' }>;
}

/** What a module may lack without anybody waiting for it: who has never been read, and is not about to be. null where there is nothing of that kind. */
export async function neverRead(db: Db, module: string): Promise<Unknown | null> {
  const [row] = await db.query<Unknown>(
    `select m.open_import ->> 'name' as name, m.open_import ->> 'file' as file, (m.open_import -> 'line')::int as line, u.modules
     from module m cross join lateral (
       select jsonb_agg(jsonb_build_object('module', x.name, 'is', case when x.trouble_kind is null then 'invalid' else 'unreadable' end) order by x.name) as modules
       from module x where x.edges_commit is null and x.name <> m.name and (x.trouble_kind is not null or x.head_commit is not null and x.stale_since is null)
     ) u
     where m.name = $1 and m.open_import is not null and u.modules is not null`,
    [module],
  );
  return row ?? null;
}

export interface Side {
  readonly first: readonly string[];
  readonly count: number;
}

export interface Neighbours {
  readonly buildsOn: Side;
  readonly builtOnBy: Side;
}

const MOST_NEIGHBOURS = 8;
const NOBODY: Side = { first: [], count: 0 };

/** The neighbours of those of the named modules that have any. */
export async function neighbours(db: Db, modules: readonly string[]): Promise<Map<string, Neighbours>> {
  const side = async (near: 'module' | 'input', far: 'module' | 'input'): Promise<Array<Side & { readonly name: string }>> =>
    await db.query(
      `select name, (array_agg(other order by other collate "C"))[1:${MOST_NEIGHBOURS}] as first, count(*)::int as count
       from (select distinct ${near} as name, ${far} as other from build_edge where ${near} = any ($1)) pair group by name`,
      [modules],
    );
  return bothSides(await Promise.all([side('module', 'input'), side('input', 'module')]));
}

/** Two graphs with the same print have the same edges. It is read in a twentieth of the time that all neighbours take. */
const PRINT = `(select count(*) || ' ' || coalesce(sum(hashtextextended(input, hashtextextended(module, 0))), 0) from build_edge)`;

export async function graphPrint(db: Db): Promise<string> {
  const [row] = await db.query<{ print: string }>(`select ${PRINT} as print`);
  return row?.print ?? '';
}

export interface AllNeighbours {
  /** Of the graph that these are of. */
  readonly print: string;
  readonly of: ReadonlyMap<string, Neighbours>;
}

/** The neighbours of all modules that have any, and the print of the same moment: one statement. */
export async function allNeighbours(db: Db): Promise<AllNeighbours> {
  const rows = await db.query<Side & { readonly kind: 'print' | 'input' | 'dependant'; readonly name: string }>(
    `with pair as materialized (select distinct module, input from build_edge)
     select 'print' as kind, ${PRINT} as name, '{}'::text[] as first, 0 as count
     union all
     select 'input', module, (array_agg(input order by input collate "C"))[1:${MOST_NEIGHBOURS}], count(*)::int from pair group by module
     union all
     select 'dependant', input, (array_agg(module order by module collate "C"))[1:${MOST_NEIGHBOURS}], count(*)::int from pair group by input`,
  );
  const of = (kind: 'input' | 'dependant'): typeof rows => rows.filter((row) => row.kind === kind);
  return { print: rows.find((row) => row.kind === 'print')?.name ?? '', of: bothSides([of('input'), of('dependant')]) };
}

type Sides = ReadonlyArray<Side & { readonly name: string }>;

function bothSides([inputs, dependants]: readonly [Sides, Sides]): Map<string, Neighbours> {
  const found = new Map<string, Neighbours>(inputs.map(({ name, first, count }) => [name, { buildsOn: { first, count }, builtOnBy: NOBODY }]));
  for (const { name, first, count } of dependants) {
    found.set(name, { buildsOn: found.get(name)?.buildsOn ?? NOBODY, builtOnBy: { first, count } });
  }
  return found;
}

/**
 * When the effective build of a module was answered, where it has the same artifacts as the fit build before it and that was
 * not long ago: what builds on it was cut off there, and nothing was sent.
 */
export async function cutOffs(db: Db, since: Date, modules: readonly string[] | null = null): Promise<Map<string, Iso>> {
  const rows = await db.query<{ module: string; at: Iso }>(
    `select m.name as module, iso(b.answered_at) as at
     from module m join build b on b.id = m.effective_build and b.answered_at >= $1 and not b.not_reproducible
     cross join lateral (
       select p.id from build p where p.module = m.name and p.verdict = 'fit' and p.answered_at < b.answered_at order by p.answered_at desc limit 1
     ) before
     where ($2::text[] is null or m.name = any ($2))
       and (select array_agg(a.name || '@' || a.digest order by a.name) from artifact a where a.build_id = b.id)
         = (select array_agg(a.name || '@' || a.digest order by a.name) from artifact a where a.build_id = before.id)`,
    [since, modules],
  );
  return new Map(rows.map((row) => [row.module, row.at]));
}

/**
 * Of the modules whose effective build was made again with the same inputs and came out otherwise: `artifact file` of what
 * differed, as far as it was built twice to find that out.
 */
export async function unlikeBuilds(db: Db, modules: readonly string[] | null = null): Promise<Map<string, readonly string[]>> {
  const rows = await db.query<{ module: string; files: readonly string[] }>(
    `select distinct on (m.name) m.name as module, array(select (d ->> 'artifact') || ' ' || (d ->> 'file') from jsonb_array_elements(coalesce(b.differing, '[]')) d) as files
     from module m join build e on e.id = m.effective_build join build b on b.module = m.name and b.closure = e.closure and b.not_reproducible
     where $1::text[] is null or m.name = any ($1) order by m.name, jsonb_array_length(coalesce(b.differing, '[]')) = 0, b.try_number desc`,
    [modules],
  );
  return new Map(rows.map((row) => [row.module, row.files]));
}

export interface PlannedModule {
  readonly module: string;
  readonly head: string | null;
  /** What the manifest of the head says, else the mesh's default. */
  readonly policy: DeclarePolicy;
  readonly isHeld: boolean;
  /** False where the manifest of its head is invalid: nothing is built before its source moves. */
  readonly isBuildable: boolean;
  /** Since when the head's closure has had no verdict. */
  readonly staleSince: Iso | null;
  /** It is placed on these. */
  readonly nodes: readonly string[];
}

/** What a plan says of the modules in it. */
export async function plannedModules(db: Db, modules: readonly string[]): Promise<Map<string, PlannedModule>> {
  const rows = await db.query<PlannedModule>(
    `select m.name as module, m.head_commit as head, m.held_at is not null as "isHeld", i.outcome is distinct from 'invalid' as "isBuildable",
       iso(m.stale_since) as "staleSince",
       coalesce(i.manifest ->> 'declare', (select value #>> '{}' from setting where key = 'declareDefault'), 'ask') as policy,
       array(select p.node from placement p where p.module = m.name order by p.node) as nodes
     from module m left join inspection i on i.module = m.name and i.commit = m.head_commit
     where m.name = any ($1)`,
    [modules],
  );
  return new Map(rows.map((row) => [row.module, row]));
}

/** The commits that artifacts were built from, by digest; of several builds with the same the newest. */
export async function commitsOf(db: Db, digests: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query<{ digest: string; commit: string }>(
    `select distinct on (a.digest) a.digest, b.commit from artifact a join build b on b.id = a.build_id
     where a.digest = any ($1) order by a.digest, b.answered_at desc nulls last, b.id desc`,
    [digests],
  );
  return new Map(rows.map((row) => [row.digest, row.commit]));
}

export interface NamedArtifact {
  readonly module: string;
  readonly name: string;
  readonly repository: string;
  readonly digest: string;
}

/** The artifacts of the module's effective build; none before it has one. */
export async function effectiveArtifacts(db: Db, module: string): Promise<NamedArtifact[]> {
  return await db.query(
    `select m.name as module, a.name, a.repository, a.digest from module m join artifact a on a.build_id = m.effective_build where m.name = $1 order by a.name`,
    [module],
  );
}

/** Where an artifact of that digest lies. */
export async function repositoriesOf(db: Db, digest: string): Promise<string[]> {
  const rows = await db.query<{ repository: string }>('select distinct repository from artifact where digest = $1 order by repository', [digest]);
  return rows.map((row) => row.repository);
}

/** The public keys of all builders that were ever seen, by name. */
export async function builderKeys(db: Db): Promise<Array<{ builder: string; publicKey: string }>> {
  return await db.query('select name as builder, public_key as "publicKey" from builder order by name');
}

/**
 * The graph made from scratch: everything again from what inspections and builds say, with nothing of how the store keeps
 * it. Four things are history and no inspection says them: whose commit gives the edges, who exported a name first, what was
 * effective before, and what the imports of a fit build led to. They are followed here by rules of their own.
 */
import { closureOf } from '../../src/domain/closure';
import type { Db } from '../../src/inventory';
import { digest } from './store';

interface Imported {
  readonly language: string;
  readonly name: string;
  readonly candidates: readonly string[];
  readonly test: boolean;
  readonly file: string;
  readonly line: number;
}

interface Base {
  readonly modules: ReadonlyArray<{ readonly name: string; readonly head: string | null }>;
  readonly inspections: ReadonlyArray<{
    readonly module: string;
    readonly commit: string;
    readonly outcome: 'valid' | 'invalid';
    readonly exports: ReadonlyArray<{ readonly language: string; readonly name: string; readonly artifact: string }>;
    readonly imports: readonly Imported[];
  }>;
  readonly builds: ReadonlyArray<{
    readonly id: string;
    readonly module: string;
    readonly commit: string;
    readonly closure: string;
    readonly try: number;
    readonly verdict: 'fit' | 'failed' | null;
    readonly asked: number;
    readonly answered: number;
    readonly artifacts: Readonly<Record<string, string>>;
    readonly inputs: ReadonlyArray<{
      readonly module: string;
      readonly artifact: string;
      readonly digest: string;
      readonly test: boolean;
      readonly names: readonly Name[];
    }>;
  }>;
}

async function readBase(db: Db): Promise<Base> {
  const [base] = await db.query<{ base: Base }>(
    `select jsonb_build_object(
       'modules', (select coalesce(jsonb_agg(jsonb_build_object('name', name, 'head', head_commit)), '[]') from module),
       'inspections', (select coalesce(jsonb_agg(to_jsonb(i)), '[]') from inspection i),
       'builds', (select coalesce(jsonb_agg(jsonb_build_object('id', b.id, 'module', b.module, 'commit', b.commit, 'closure', b.closure, 'try', b.try_number, 'verdict', b.verdict,
          'asked', extract(epoch from r.requested_at), 'answered', extract(epoch from b.answered_at),
          'artifacts', (select coalesce(jsonb_object_agg(a.name, a.digest), '{}') from artifact a where a.build_id = b.id),
          'inputs', (select coalesce(jsonb_agg(jsonb_build_object('module', u.module, 'artifact', u.artifact, 'digest', u.digest, 'test', u.is_test, 'names', u.names)), '[]') from build_input u where u.build_id = b.id))), '[]')
        from build b join request r on r.id = b.id)) as base`,
  );
  if (base === undefined) throw new Error('the store is empty');
  return base.base;
}

/** Sorted, so that two can be compared. */
export interface Graph {
  readonly exports: string[];
  readonly edges: string[];
  readonly conflicts: string[];
  readonly cyclic: string[];
  readonly settling: string[];
  readonly effective: Record<string, string>;
  readonly closures: Record<string, string>;
  readonly inputs: Record<string, string[]>;
  readonly open: Record<string, string>;
}

interface Edge {
  readonly module: string;
  readonly input: string;
  readonly artifact: string;
  readonly test: boolean;
  /** Only the input's head exports the name, and what is effective does not carry it. */
  readonly awaited: boolean;
}

/** Follows the history, and says what the graph is at each moment of it. */
export class Scratch {
  private readonly edgesCommit = new Map<string, string>();
  private readonly since = new Map<string, number>();
  private readonly effective = new Map<string, string>();
  /** By module and import: whether it was of outside when a build was fit; null: it is new. */
  private readonly wasOutside = new Map<string, Map<string, boolean | null>>();
  private moment = 0;

  constructor(private readonly db: Db) {}

  /** After each single change. */
  async graph(): Promise<Graph> {
    const base = await readBase(this.db);
    this.follow(base);
    const exported = this.exported(base);
    this.followFit(base);
    const conflicts = exported.flatMap((one) => {
      const holder = this.holder(exported, one);
      return holder === one.module ? [] : [`${one.module}: ${one.name} of ${holder}`];
    });
    let edges = this.edges(base, exported);
    // What is effective says what is still exported, and that again what is effective.
    for (let before = ''; before !== JSON.stringify([...this.effective].sort()); ) {
      before = JSON.stringify([...this.effective].sort());
      this.settleEffective(base, edges);
      edges = this.edges(base, exported);
    }
    const cyclic = base.modules.map(({ name }) => name).filter((name) => this.reaches(edges, name, name));
    this.forgetSince([...exported, ...this.kept(base, exported)]);
    const ready = base.modules.filter(({ name, head }) => inspectionOf(base, name, head)?.outcome === 'valid');
    const closures = new Map(ready.map(({ name, head }) => [name, this.closure(base, edges, name, head ?? '')]));
    const isSettling = ({ name, head }: Base['modules'][number]): boolean => {
      const inspection = inspectionOf(base, name, head);
      if (head === null || inspection?.outcome === 'invalid') return false;
      if (inspection === undefined) return true;
      const isJudged = base.builds.some((build) => build.module === name && build.closure === closures.get(name)?.hash && build.verdict !== null);
      return !isJudged && !cyclic.includes(name) && !conflicts.some((one) => one.startsWith(`${name}: `));
    };
    const known = Object.fromEntries([...closures].flatMap(([name, { hash }]) => (hash === null ? [] : [[name, hash]])).sort());
    return {
      exports: exported.map((one) => `${one.module}: ${one.language} ${one.name} (${one.artifact})`).sort(),
      edges: [...new Set(edges.map((edge) => `${edge.module} → ${edge.test ? '? ' : ''}${edge.input} (${edge.artifact})`))].sort(),
      conflicts: conflicts.sort(),
      cyclic: cyclic.sort(),
      settling: base.modules
        .filter(isSettling)
        .map(({ name }) => name)
        .sort(),
      effective: Object.fromEntries([...this.effective].sort()),
      closures: known,
      inputs: Object.fromEntries(
        [...closures].map(([name, { inputs }]) => [name, inputs.map((i) => `${i.test ? '?' : ''}${i.module}/${i.artifact}@${i.digest}`).sort()]),
      ),
      open: Object.fromEntries(
        base.modules.flatMap(({ name }) => {
          const open = this.unresolved(base, exported, name).filter((one) => this.wasOutside.get(name)?.get(importKeyOf(one)) !== true);
          const [first] = open.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
          return first === undefined ? [] : [[name, first.name]];
        }),
      ),
    };
  }

  private unresolved(base: Base, exported: ReturnType<Scratch['exported']>, module: string): Imported[] {
    const all = [...exported, ...this.kept(base, exported)];
    return this.imports(base, module).filter(
      ({ language, candidates }) => !all.some((one) => one.language === language && candidates.includes(one.name)),
    );
  }

  private imports(base: Base, module: string): readonly Imported[] {
    return inspectionOf(base, module, this.edgesCommit.get(module) ?? null)?.imports ?? [];
  }

  /** What the newest fit build of the commit that gives the imports was made with; where there is none, what they were at the commit before. */
  private followFit(base: Base): void {
    for (const name of [...this.wasOutside.keys()]) if (!base.modules.some((one) => one.name === name)) this.wasOutside.delete(name);
    for (const { name: module } of base.modules) {
      const commit = this.edgesCommit.get(module);
      const before = this.wasOutside.get(module) ?? new Map<string, boolean | null>();
      const [build] = base.builds
        .filter((one) => one.module === module && one.commit === commit && one.verdict === 'fit')
        .sort((one, other) => other.answered - one.answered);
      const had: Name[] = [...(build?.inputs.flatMap(({ names }) => names) ?? []), ...(inspectionOf(base, module, commit ?? null)?.exports ?? [])];
      const of = (one: Imported): boolean | null => {
        if (build !== undefined) return !had.some(({ language, name }) => language === one.language && one.candidates.includes(name));
        const same = before.get(importKeyOf(one));
        return same === undefined ? (before.get(importKeyOf({ ...one, test: !one.test })) ?? null) : same;
      };
      this.wasOutside.set(module, new Map(this.imports(base, module).map((one) => [importKeyOf(one), of(one)])));
    }
  }

  private follow(base: Base): void {
    this.moment += 1;
    const names = new Set(base.modules.map(({ name }) => name));
    for (const map of [this.edgesCommit, this.effective]) for (const name of [...map.keys()]) if (!names.has(name)) map.delete(name);
    for (const { name, head } of base.modules) {
      if (head !== null && inspectionOf(base, name, head)?.outcome === 'valid') this.edgesCommit.set(name, head);
    }
    this.forgetSince([...this.exported(base), ...this.kept(base, this.exported(base))]);
    for (const key of this.exported(base).map(keyOf)) if (!this.since.has(key)) this.since.set(key, this.moment);
  }

  /** A name that neither the head nor what is effective exports any more begins anew. */
  private forgetSince(all: ReturnType<Scratch['exported']>): void {
    const keys = new Set(all.map(keyOf));
    for (const key of [...this.since.keys()]) if (!keys.has(key)) this.since.delete(key);
  }

  private exported(base: Base): Array<{ module: string; language: string; name: string; artifact: string }> {
    return base.modules.flatMap(({ name: module }) =>
      (inspectionOf(base, module, this.edgesCommit.get(module) ?? null)?.exports ?? []).map(({ language, name, artifact }) => ({
        module,
        language,
        name,
        artifact,
      })),
    );
  }

  /** What an effective build of another commit than the one that gives the exports carries otherwise, or besides. */
  private kept(base: Base, exported: ReturnType<Scratch['exported']>): ReturnType<Scratch['exported']> {
    return base.modules.flatMap(({ name: module }) =>
      (this.carried(base, module) ?? [])
        .filter((kept) => !exported.some((one) => one.module === module && isSameName(one, kept) && one.artifact === kept.artifact))
        .map(({ language, name, artifact }) => ({ module, language, name, artifact })),
    );
  }

  /** What the effective build exports, nothing where there is none; null where it is of the commit that gives the exports, or that is not known. */
  private carried(base: Base, module: string): Base['inspections'][number]['exports'] | null {
    const commit = base.builds.find(({ id }) => id === this.effective.get(module))?.commit ?? null;
    if (commit === null) return [];
    if (commit === this.edgesCommit.get(module)) return null;
    return inspectionOf(base, module, commit)?.exports ?? null;
  }

  private holder(exported: ReturnType<Scratch['exported']>, of: { readonly language: string; readonly name: string }): string | null {
    const all = exported.filter((one) => one.language === of.language && one.name === of.name);
    return all.sort((a, b) => this.older(a, b))[0]?.module ?? null;
  }

  private edges(base: Base, exported: ReturnType<Scratch['exported']>): Edge[] {
    const kept = this.kept(base, exported);
    const found = base.modules.flatMap(({ name: module }) =>
      this.imports(base, module).flatMap((one): Edge[] => {
        const hit = this.hit(base, exported, kept, module, one);
        return hit === null || hit.module === module
          ? []
          : [{ module, input: hit.module, artifact: hit.artifact, test: one.test, awaited: hit.awaited }];
      }),
    );
    const isSameEdge = (one: Edge, other: Edge): boolean =>
      one.module === other.module && one.input === other.input && one.artifact === other.artifact;
    return found
      .filter((edge) => !edge.test || !found.some((other) => !other.test && isSameEdge(other, edge)))
      .map((edge) => ({ ...edge, awaited: found.some((other) => other.awaited && isSameEdge(other, edge)) }));
  }

  /** Candidate after candidate; those that nobody can build on yet only where the import is new, or there is no other. */
  private hit(
    base: Base,
    exported: ReturnType<Scratch['exported']>,
    kept: ReturnType<Scratch['exported']>,
    module: string,
    wanted: Imported,
  ): { module: string; artifact: string; name: string; awaited: boolean } | null {
    const wasOutside = this.wasOutside.get(module)?.get(importKeyOf(wanted)) ?? null;
    const all = [...kept, ...exported];
    const possible = wanted.candidates.flatMap((name) => {
      const isIt = (one: Name): boolean => isSameName(one, { language: wanted.language, name });
      const offered = all.filter(isIt).map((one) => {
        const carried = this.carried(base, one.module);
        return { ...one, awaited: one.module !== module && carried !== null && !carried.some(isIt) };
      });
      const ready = offered.filter(({ awaited }) => !awaited);
      const first = (some: typeof offered): (typeof offered)[number] | undefined => {
        const [keeper] = some.filter((one) => kept.some((k) => k.module === one.module && isIt(k))).sort((a, b) => this.older(a, b));
        return some.find((one) => one.module === module) ?? keeper ?? [...some].sort((a, b) => this.older(a, b))[0];
      };
      return wasOutside === null ? [first(offered)] : [first(ready), first(offered.filter(({ awaited }) => awaited))];
    });
    const hits = possible.filter((one) => one !== undefined);
    if (wasOutside === null) return hits[0] ?? null;
    return hits.find(({ awaited }) => !awaited) ?? (wasOutside ? null : (hits[0] ?? null));
  }

  private older(a: { readonly module: string; readonly language: string; readonly name: string }, b: typeof a): number {
    return (this.since.get(keyOf(a)) ?? 0) - (this.since.get(keyOf(b)) ?? 0) || (a.module < b.module ? -1 : 1);
  }

  private reaches(edges: readonly Edge[], from: string, to: string): boolean {
    const seen = new Set<string>();
    const queue = [from];
    for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
      for (const edge of edges) {
        if (edge.module !== node || edge.test) continue;
        if (edge.input === to) return true;
        if (!seen.has(edge.input)) queue.push(edge.input);
        seen.add(edge.input);
      }
    }
    return false;
  }

  private closure(
    base: Base,
    edges: readonly Edge[],
    module: string,
    head: string,
  ): { hash: string | null; inputs: Array<{ module: string; artifact: string; digest: string; test: boolean }> } {
    const build = (name: string): Base['builds'][number] | undefined => base.builds.find(({ id }) => id === this.effective.get(name));
    const recorded = new Map<string, string>();
    const tests = new Map<string, boolean>();
    const direct = edges.filter((edge) => edge.module === module);
    const visit = (input: string, artifact: string, test: boolean): void => {
      const key = `${input}/${artifact}`;
      if (tests.has(key) && (tests.get(key) === false || test)) return;
      tests.set(key, test);
      const made = build(input);
      if (made?.artifacts[artifact] === undefined) return;
      for (const used of made.inputs) {
        if (used.test || used.module === module) continue;
        const usedKey = `${used.module}/${used.artifact}`;
        recorded.set(usedKey, [recorded.get(usedKey) ?? '', used.digest].sort()[1] ?? '');
        visit(used.module, used.artifact, test);
      }
    };
    for (const edge of direct) visit(edge.input, edge.artifact, edge.test);
    const inputs = [...tests].flatMap(([key, test]) => {
      const [input = '', artifact = ''] = key.split('/');
      const made = build(input)?.artifacts[artifact] ?? recorded.get(key);
      return made === undefined ? [] : [{ module: input, artifact, digest: made, test }];
    });
    return { hash: inputs.length < tests.size || direct.some((edge) => edge.awaited) ? null : closureOf({ commit: head, inputs }, digest), inputs };
  }

  /** Round after round over all modules, until nothing moves. */
  private settleEffective(base: Base, edges: readonly Edge[]): void {
    for (let round = 0; round < 100; round += 1) {
      const chosen = base.modules.flatMap(({ name, head }): Array<[string, string]> => {
        const mine = base.builds.filter((build) => build.module === name && build.verdict !== null);
        const hash = inspectionOf(base, name, head)?.outcome === 'valid' ? this.closure(base, edges, name, head ?? '').hash : null;
        const tries = mine.filter((build) => build.closure === hash).sort((a, b) => a.try - b.try);
        const fit = tries.at(-1)?.verdict === 'fit' ? tries.find((build) => build.verdict === 'fit') : undefined;
        const ofHead = mine.filter((build) => build.commit === head && build.verdict === 'fit').sort((a, b) => b.asked - a.asked)[0];
        const id = fit?.id ?? ofHead?.id ?? this.effective.get(name);
        return id === undefined ? [] : [[name, id]];
      });
      const isAtRest = chosen.every(([name, id]) => this.effective.get(name) === id);
      for (const [name, id] of chosen) this.effective.set(name, id);
      if (isAtRest) return;
    }
    throw new Error('what is effective goes round');
  }
}

const importKeyOf = ({ language, name, test }: Imported): string => `${language} ${name} ${test}`;

const placeOf = ({ test, file, line, name }: Imported): string => `${test ? 1 : 0} ${file} ${String(line).padStart(6, '0')} ${name}`;

type Name = { readonly language: string; readonly name: string };

const isSameName = (one: Name, other: Name): boolean => one.language === other.language && one.name === other.name;

const keyOf = (one: { readonly module: string; readonly language: string; readonly name: string }): string =>
  `${one.module} ${one.language} ${one.name}`;

function inspectionOf(base: Base, module: string, commit: string | null): Base['inspections'][number] | undefined {
  return base.inspections.find((one) => one.module === module && one.commit === commit);
}

/** As the store has kept it. */
export async function keptGraph(db: Db): Promise<Graph> {
  const [row] = await db.query<{ graph: Graph }>(
    `select jsonb_build_object(
       'exports', (select coalesce(jsonb_agg(module || ': ' || language || ' ' || name || ' (' || artifact || ')'), '[]') from module_export),
       'edges', (select coalesce(jsonb_agg(distinct module || case when is_test then ' → ? ' else ' → ' end || input || ' (' || artifact || ')'), '[]') from (
          select module, input, artifact, bool_and(is_test) as is_test from build_edge group by 1, 2, 3) e),
       'conflicts', (select coalesce(jsonb_agg(m.name || ': ' || (c ->> 'name') || ' of ' || (c ->> 'module')), '[]') from module m, jsonb_array_elements(m.conflicts) c),
       'cyclic', (select coalesce(jsonb_agg(name), '[]') from module where is_in_cycle),
       'settling', (select coalesce(jsonb_agg(name), '[]') from module where is_settling),
       'effective', (select coalesce(jsonb_object_agg(name, effective_build), '{}') from module where effective_build is not null),
       'closures', (select coalesce(jsonb_object_agg(name, closure), '{}') from module where closure is not null),
       'inputs', (select coalesce(jsonb_object_agg(m.name, (select coalesce(jsonb_agg(case when u.is_test then '?' else '' end || u.input || '/' || u.artifact || '@' || u.digest), '[]') from module_input u where u.module = m.name)), '{}')
          from module m join inspection i on i.module = m.name and i.commit = m.head_commit and i.outcome = 'valid'),
       'open', (select coalesce(jsonb_object_agg(name, open_import ->> 'name'), '{}') from module where open_import is not null)) as graph`,
  );
  if (row === undefined) throw new Error('the store is empty');
  const { exports, edges, conflicts, cyclic, settling, effective, closures, inputs, open } = row.graph;
  return {
    exports: exports.sort(),
    edges: edges.sort(),
    conflicts: conflicts.sort(),
    cyclic: cyclic.sort(),
    settling: settling.sort(),
    effective: Object.fromEntries(Object.entries(effective).sort()),
    closures: Object.fromEntries(Object.entries(closures).sort()),
    inputs: Object.fromEntries(Object.entries(inputs).map(([name, list]) => [name, list.sort()])),
    open,
  };
}

/** A mesh of modules that build on one another, at rest: what the figures of the graph are measured on. */
import type { Db } from '../src/inventory/db';
import { SEED_COMMIT } from './mesh';

const LEVELS = 4;
const INPUTS = 3;

/** How many levels there are, and how many modules of the level before it each one imports (in the first: none). */
export interface GraphShape {
  readonly levels: number;
  readonly inputs: number;
}

/** A statement of the store's pool has half a minute. */
const AT_A_TIME = 5_000;

export const SEED_NAME = (module: string): string => `example.org/${module}`;

/**
 * Modules m000000…, in levels, each importing some of the level before it, all fit and compared.
 * Everything is written as the store would have left it, set-based and without its triggers; whoever measures on it
 * checks that settling it again changes nothing.
 */
export async function seedGraph(db: Db, count: number, { levels, inputs }: GraphShape = { levels: LEVELS, inputs: INPUTS }): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query('set local session_replication_role = replica');
    await tx.query(
      `create temporary table seed on commit drop as
       select 'm' || lpad(n::text, 6, '0') as name, n, n / ($1::int / ${levels}) as level from generate_series(0, $1::int - 1) n`,
      [count],
    );
    await tx.query(
      `create temporary table seed_edge on commit drop as
       select distinct s.name as module, 'm' || lpad(((s.level - 1) * w.width + (s.n + k) % w.width)::text, 6, '0') as input
       from seed s cross join (select $1::int / ${levels} as width) w cross join generate_series(1, ${inputs}) k where s.level > 0`,
      [count],
    );
    await tx.query('create index on seed_edge (module)');
    await tx.query('analyze seed, seed_edge');
    await tx.query(
      `insert into module (name, repository, ref, head_commit, head_since, read_at, next_read_at, edges_commit, effective_build, situation, next, verdict, line, in_step, compared_at)
       select name, 'file:///nowhere/' || name, 'refs/heads/main', $1, now(), now(), now() + interval '1 day', $1, 'seed-' || name, 'in step', 'nothing', 'fit', 'seeded', true, now() from seed`,
      [SEED_COMMIT],
    );
    await tx.query(
      `insert into module_export (module, language, name, artifact, file, line, since) select name, 'go', 'example.org/' || name, 'out', 'go.mod', 1, now() from seed`,
    );
    await tx.query(
      `insert into module_import (module, language, name, is_test, candidates, file, line, was_outside)
       select module, 'go', 'example.org/' || input, false, array['example.org/' || input, 'example.org'], 'main.go', 3, false from seed_edge`,
    );
    await tx.query(
      `insert into import_candidate (language, name, module) select distinct i.language, c.name, i.module from module_import i, unnest(i.candidates) c (name)`,
    );
    await tx.query(
      `insert into build_edge (module, input, artifact, language, name, is_test, file, line) select module, input, 'out', 'go', 'example.org/' || input, false, 'main.go', 3 from seed_edge`,
    );
    for (let from = 0; from < count; from += AT_A_TIME) {
      const some = [from, from + AT_A_TIME];
      await tx.query(
        `insert into module_input (module, input, artifact, digest, is_test)
         with recursive walk (module, input) as (
           select e.module, e.input from seed_edge e join seed s on s.name = e.module and s.n >= $1 and s.n < $2
           union
           select w.module, e.input from walk w join seed_edge e on e.module = w.input
         )
         select module, input, 'out', 'sha256:' || encode(sha256(input::bytea), 'hex'), false from walk`,
        some,
      );
      await tx.query(
        `update module m set closure = closure_of(m.head_commit, coalesce(
           (select jsonb_agg(jsonb_build_object('module', i.input, 'artifact', i.artifact, 'digest', i.digest)) from module_input i where i.module = m.name), '[]'))
         from seed s where s.name = m.name and s.n >= $1 and s.n < $2`,
        some,
      );
      await tx.query(
        `insert into build_input (build_id, module, artifact, digest, is_test, kind, repository, blob, size, commit, names)
         select 'seed-' || i.module, i.input, i.artifact, i.digest, i.is_test, 'go', 'tally/out', i.digest, 1, $3, '[]'
         from module_input i join seed s on s.name = i.module and s.n >= $1 and s.n < $2`,
        [...some, SEED_COMMIT],
      );
    }
    await tx.query(
      `insert into inspection (module, commit, request_id, outcome, manifest, exports, imports, answered_at)
       select s.name, $1, 'seed', 'valid', jsonb_build_object('module', s.name, 'declare', 'auto'),
         jsonb_build_array(jsonb_build_object('language', 'go', 'name', 'example.org/' || s.name, 'artifact', 'out', 'file', 'go.mod', 'line', 1)),
         coalesce((select jsonb_agg(jsonb_build_object('language', i.language, 'name', i.name, 'candidates', i.candidates, 'test', false, 'file', i.file, 'line', i.line))
           from module_import i where i.module = s.name), '[]'), now()
       from seed s`,
      [SEED_COMMIT],
    );
    await tx.query(
      `insert into request (id, kind, module, commit, platform, closure, body, state, answered_at, completed_at)
       select 'seed-' || name, 'build', name, head_commit, 'linux-amd64', closure, '{}', 'answered', now(), now() from module`,
    );
    await tx.query(
      `insert into build (id, module, commit, closure, verdict, answered_at) select 'seed-' || name, name, head_commit, closure, 'fit', now() from module`,
    );
    await tx.query(
      `insert into artifact (build_id, name, kind, repository, digest, blob, size)
       select 'seed-' || name, 'out', 'go', 'tally/out', 'sha256:' || encode(sha256(name::bytea), 'hex'), 'sha256:' || encode(sha256(name::bytea), 'hex'), 1 from module`,
    );
    await tx.query('update module set compared_version = facts_version, nudged_version = facts_version');
  });
  await db.query('analyze');
}

/** Modules of the last level but one that others build on: near the leaves. */
export async function nearLeaves(db: Db, count: number, limit: number): Promise<string[]> {
  const rows = await db.query<{ input: string }>(
    `select input from (select distinct input from build_edge where input >= 'm' || lpad(($1::int / ${LEVELS} * ${LEVELS - 2})::text, 6, '0')) e order by md5(input) limit $2`,
    [count, limit],
  );
  return rows.map((row) => row.input);
}

-- Nobody can build on what only a head exports that was never fit: the artifact that there is does not carry it. It is missing, as an artifact is that was never made.

create function is_made(input text, artifact_name text) returns boolean language sql stable as $$
  select exists (select from module z join artifact a on a.build_id = z.effective_build and a.name = artifact_name where z.name = input)
$$;

create function is_missing(edge build_edge) returns boolean language sql stable as $$
  select not is_made(edge.input, edge.artifact) or is_awaited(edge.input, edge.language, edge.name)
$$;

-- Inputs and closure of modules whose head is inspected: each direct edge at the input's effective build, and what that build
-- was made with, each at its own effective build now. What an effective build used and nobody makes any more is used as it was.
create or replace function settle_closures(names text[]) returns void language plpgsql as $$
begin
  with recursive ready as materialized (
    select m.name, m.head_commit from unnest(names) n (name) join module m on m.name = n.name
    join inspection i on i.module = m.name and i.commit = m.head_commit and i.outcome = 'valid'
  ), walk (module, input, artifact, is_test, recorded, is_awaited) as (
    select e.module, e.input, e.artifact, e.is_test, null::text, is_awaited(e.input, e.language, e.name) from ready r join build_edge e on e.module = r.name
    union
    select w.module, b.module, b.artifact, w.is_test, b.digest, false
    from walk w
    join module z on z.name = w.input
    join artifact a on a.build_id = z.effective_build and a.name = w.artifact
    join build_input b on b.build_id = z.effective_build and not b.is_test
    where b.module <> w.module
  ), wanted as materialized (
    select w.module, w.input, w.artifact, bool_and(w.is_test) as is_test, coalesce(min(a.digest), max(w.recorded)) as digest,
      bool_or(w.is_awaited) as is_awaited
    from walk w left join module z on z.name = w.input left join artifact a on a.build_id = z.effective_build and a.name = w.artifact
    group by w.module, w.input, w.artifact
  ), gone as (
    delete from module_input i
    using (
      select i.module, i.input, i.artifact from ready r join module_input i on i.module = r.name
      except select module, input, artifact from wanted where digest is not null
    ) g
    where (i.module, i.input, i.artifact) = (g.module, g.input, g.artifact)
  ), fresh as (
    insert into module_input as i (module, input, artifact, digest, is_test)
    select w.module, w.input, w.artifact, w.digest, w.is_test from wanted w where w.digest is not null
    on conflict (module, input, artifact) do update set digest = excluded.digest, is_test = excluded.is_test
      where (i.digest, i.is_test) is distinct from (excluded.digest, excluded.is_test)
  ), known as (
    select u.name, case when bool_and(u.is_known) then closure_of(max(u.head_commit), coalesce(
      jsonb_agg(jsonb_build_object('module', u.input, 'artifact', u.artifact, 'digest', u.digest)) filter (where u.input is not null), '[]')) end as closure
    from (
      select n.name, null::text as head_commit, null::text as input, null::text as artifact, null::text as digest, true as is_known from unnest(names) n (name)
      union all
      select name, head_commit, null, null, null, true from ready
      union all
      select module, null, input, artifact, digest, digest is not null and not is_awaited from wanted
    ) u
    group by u.name
  ), locked as (
    select m.name, k.closure from known k join module m on m.name = k.name
    where m.closure is distinct from k.closure order by m.name for no key update of m
  )
  update module m set closure = l.closure, progress_at = clock_timestamp() from locked l where m.name = l.name;
end $$;

-- Breadth first along edges: every module that is reached, and from which one first; `closing` is the one that leads back to
-- the start. Only build edges; or, where `only_missing`, edges of code and tests to what is missing.
create or replace function reach_of(start text, only_missing boolean, out nodes text[], out parents text[], out closing text) language plpgsql stable as $$
declare
  frontier text[] := array[start];
  origins text[];
begin
  nodes := array[start];
  parents := array[null::text];
  -- Each round adds modules that were not there, so it ends.
  while cardinality(frontier) > 0 loop
    if closing is null then
      select min(e.module) into closing from build_edge e
      where e.input = start and e.module = any (frontier) and (not e.is_test or only_missing) and (not only_missing or is_missing(e));
    end if;
    select coalesce(array_agg(f.input), '{}'), coalesce(array_agg(f.module), '{}') into frontier, origins
    from (
      select distinct on (e.input) e.input, e.module from build_edge e
      where e.module = any (frontier) and e.input <> all (nodes) and (not e.is_test or only_missing) and (not only_missing or is_missing(e))
      order by e.input, e.module
    ) f;
    nodes := nodes || frontier;
    parents := parents || origins;
  end loop;
end $$;

-- settling, missing, cycle and bootstrap of a stale module.
create or replace function waits_of(start text) returns jsonb language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
declare
  build record := reach_of(start, false);
  first_fit record := reach_of(start, true);
  missing jsonb;
begin
  select coalesce(jsonb_agg(to_jsonb(f) order by f.module), '[]') into missing from (
    select distinct on (z.name) z.name as module,
      case when b.id is null then z.name || ' has had no fit build yet'
        else z.name || ' at ' || left(b.commit, 7) || case when is_made(e.input, e.artifact) then ' does not export ' || e.name else ' makes no artifact ' || e.artifact end end as because,
      iso(m.stale_since) as since, not z.is_settling as "needsPerson"
    from module m join build_edge e on e.module = m.name join module z on z.name = e.input left join build b on b.id = z.effective_build
    where m.name = start and is_missing(e) order by z.name, e.artifact, e.name
  ) f;
  return jsonb_build_object(
    'settling', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'module', s.name,
        'state', case when i.commit is null then 'inspecting' when r.id is not null then 'building' else 'waiting' end,
        'takenBy', r.taken_by,
        'since', iso(s.stale_since),
        'progressAt', iso(greatest(s.head_since, s.progress_at, i.answered_at, r.requested_at, r.published_at, r.taken_at, r.beat_at, r.progress_at)),
        'path', path_to(build.nodes, build.parents, s.name)) order by s.name), '[]')
      from unnest(build.nodes) n (name)
      join module s on s.name = n.name and s.is_settling and s.name <> start
      left join inspection i on i.module = s.name and i.commit = s.head_commit
      left join lateral (
        select r.* from request r
        where r.module = s.name and r.state in ('requested', 'published', 'taken') and r.stop_reason is null and r.commit = s.head_commit
          and (r.kind = 'inspect' and i.commit is null or r.kind = 'build' and (r.closure = s.closure or r.state = 'taken'))
        order by r.requested_at desc limit 1
      ) r on true),
    'missing', missing,
    'cycle', case when build.closing is not null then path_to(build.nodes, build.parents, build.closing) || start end,
    'bootstrap', case when build.closing is null and first_fit.closing is not null then path_to(first_fit.nodes, first_fit.parents, first_fit.closing) || start end);
end $$;

drop function is_missing(text, text);

select settle_graph(array(select name from module));

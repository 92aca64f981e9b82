-- Nobody can build on what only a head exports that was never fit: the artifact that there is does not carry it. It is missing, as an artifact is that was never made.

create function is_made(input text, artifact_name text) returns boolean language sql stable as $$
  select exists (select from module z join artifact a on a.build_id = z.effective_build and a.name = artifact_name where z.name = input)
$$;

create function is_missing(edge build_edge) returns boolean language sql stable as $$
  select not is_made(edge.input, edge.artifact) or is_awaited(edge.input, edge.language, edge.name)
$$;

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

-- Of these modules those that lack an input which only a person can bring about: one that is not about to have another artifact, or lacks such an
-- input itself. They do not settle by themselves, and nobody waits for that. One whose head moved is so until that is inspected.
create function blocked_of(names text[]) returns text[] language plpgsql stable as $$
declare
  found text[] := '{}';
  more text[];
begin
  -- Each round adds modules that were not there, so it ends.
  loop
    more := array(
      select distinct s.name from unnest(names) n (name) join module s on s.name = n.name and s.is_settling and s.closure is null
      join build_edge e on e.module = s.name join module z on z.name = e.input
      where s.name <> all (found) and is_missing(e) and (not z.is_settling or z.name = any (found)));
    exit when cardinality(more) = 0;
    found := found || more;
  end loop;
  return found;
end $$;

-- settling, missing, cycle and bootstrap of a stale module.
create or replace function waits_of(start text) returns jsonb language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
declare
  build record := reach_of(start, false);
  first_fit record := reach_of(start, true);
  blocked text[] := blocked_of(array(select unnest(build.nodes || first_fit.nodes) except select start));
  missing jsonb;
begin
  select coalesce(jsonb_agg(to_jsonb(f) order by f.module), '[]') into missing from (
    select distinct on (z.name) z.name as module,
      case when b.id is null then z.name || ' has had no fit build yet'
        else z.name || ' at ' || left(b.commit, 7) || case when is_made(e.input, e.artifact) then ' does not export ' || e.name else ' makes no artifact ' || e.artifact end end as because,
      iso(m.stale_since) as since, not z.is_settling or z.name = any (blocked) as "needsPerson"
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
      join module s on s.name = n.name and s.is_settling and s.name <> start and s.name <> all (blocked)
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

-- What a stale module with an open import waits for: the code of this one, and of others perhaps, and when reading last got on. Of those the one whose
-- head moved last is named: it is likely read last, so the name stays as long as it can.
create function open_import_of(start text) returns jsonb language sql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
  select m.open_import || jsonb_build_object('module', named.module, 'hasOthers', named.count > 1, 'progressAt', iso(greatest(named.came, (
      select max(greatest(r.at, r.beat_at)) from (
        select greatest(requested_at, published_at, taken_at) as at, beat_at from request
        where kind = 'inspect' and state in ('requested', 'published', 'taken') and trouble_since is null
        order by greatest(requested_at, published_at, taken_at) desc limit 20) r))))
  from module m join inspection i on i.module = m.name and i.commit = m.head_commit
  cross join lateral (
    select (array_agg(u.name order by u.since desc, u.name desc))[1] as module, count(*), max(greatest(x.added_at, x.head_since)) as came
    from (select name, since from unread where since <= i.answered_at order by since desc, name desc limit 2) u join module x on x.name = u.name
  ) named
  where m.name = start and named.module is not null
$$;

-- A line that waits for code to be read is owed another comparison once nothing is left that it waits for, or the one that it names is read: of both
-- the rows tell, whatever happened. Those that were compared longest ago first, and `most` at a time: all that wait may name the same one.
create function look_at_unread_again(most int) returns void language plpgsql as $$
declare
  first timestamptz := (select min(since) from unread);
  read text[] := array(
    select named.unread from (select distinct unread from module where unread is not null) named
    where not exists (select from unread u where u.name = named.unread));
begin
  if first = '-infinity' and cardinality(read) = 0 then return; end if;
  perform bump_modules(array(
    select m.name from module m left join inspection i on i.module = m.name and i.commit = m.head_commit
    where m.unread is not null and m.facts_version = m.compared_version and (m.unread = any (read) or first is null or first > i.answered_at)
    order by m.compared_at limit most for no key update of m skip locked));
end $$;

select settle_fit(array(select name from module));
select settle_open(array(select name from module));
select settle_graph(array(select name from module));

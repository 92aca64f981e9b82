-- What others build on is a module's effective build. As long as that is not of the commit that gives its exports (the head is being
-- built, failed, or took a name that another one has), what it exported stays exported too: a head that never became fit takes nothing from anyone.

create table kept_export (
  module text not null references module (name) on delete cascade,
  language text not null,
  name text not null,
  artifact text not null,
  primary key (module, language, name)
);
create index kept_export_name on kept_export (language, name);

-- Returns the modules whose edges may be others by that.
create function settle_kept(names text[]) returns text[] language plpgsql as $$
declare concerned text[];
begin
  with wanted as (
    select distinct on (m.name, x.language, x.name) m.name as module, x.language, x.name, x.artifact
    from unnest(names) n (name) join module m on m.name = n.name
    join build b on b.id = m.effective_build and b.commit is distinct from m.edges_commit
    join inspection i on i.module = m.name and i.commit = b.commit
    cross join lateral jsonb_to_recordset(i.exports) x (language text, name text, artifact text)
    where not exists (select from module_export e where (e.module, e.language, e.name) = (m.name, x.language, x.name))
    order by m.name, x.language, x.name, x.artifact collate "C"
  ), gone as (
    delete from kept_export k
    using (
      select k.module, k.language, k.name from unnest(names) n (name) join kept_export k on k.module = n.name
      except select module, language, name from wanted
    ) g
    where (k.module, k.language, k.name) = (g.module, g.language, g.name)
    returning k.language, k.name
  ), fresh as (
    insert into kept_export as k (module, language, name, artifact)
    select module, language, name, artifact from wanted
    on conflict (module, language, name) do update set artifact = excluded.artifact where k.artifact <> excluded.artifact
    returning k.language, k.name
  )
  select coalesce(array_agg(distinct c.module), '{}') into concerned
  from (select language, name from gone union select language, name from fresh) t join import_candidate c on (c.language, c.name) = (t.language, t.name);
  return concerned;
end $$;

create or replace function is_exported(wanted_language text, candidates text[]) returns boolean language sql stable as $$
  select exists (select from unnest(candidates) c (name) join module_export e on (e.language, e.name) = (wanted_language, c.name))
    or exists (select from unnest(candidates) c (name) join kept_export k on (k.language, k.name) = (wanted_language, c.name))
$$;

-- Imports joined with exports: the most specific candidate that any module exports, of several modules one that keeps it, for what
-- it made carries it, else the first. What a module exports itself is inside it. Returns the modules whose edges changed.
create or replace function settle_edges(names text[]) returns text[] language plpgsql as $$
declare changed text[];
begin
  with wanted as (
    select distinct on (i.module, hit.module, hit.artifact, i.language, hit.name)
      i.module, hit.module as input, hit.artifact, i.language, hit.name, i.is_test, i.file, i.line
    from unnest(names) n (name)
    join module_import i on i.module = n.name
    cross join lateral (
      select e.module, e.artifact, e.name from (
        select c.place, e.module, e.artifact, e.name, false as is_kept, e.since from unnest(i.candidates) with ordinality c (name, place)
        join module_export e on (e.language, e.name) = (i.language, c.name)
        union all
        select c.place, k.module, k.artifact, k.name, true, null from unnest(i.candidates) with ordinality c (name, place)
        join kept_export k on (k.language, k.name) = (i.language, c.name)
      ) e
      order by e.place, (e.module = i.module) desc, e.is_kept desc, e.since, e.module collate "C" limit 1
    ) hit
    where hit.module <> i.module
    order by i.module, hit.module, hit.artifact, i.language, hit.name, i.is_test, i.file collate "C", i.line
  ), gone as (
    delete from build_edge b
    using (
      select b.module, b.input, b.artifact, b.language, b.name from unnest(names) n (name) join build_edge b on b.module = n.name
      except select module, input, artifact, language, name from wanted
    ) g
    where (b.module, b.input, b.artifact, b.language, b.name) = (g.module, g.input, g.artifact, g.language, g.name)
    returning b.module
  ), fresh as (
    insert into build_edge as b (module, input, artifact, language, name, is_test, file, line)
    select w.module, w.input, w.artifact, w.language, w.name, w.is_test, w.file, w.line from wanted w
    on conflict (module, input, artifact, language, name) do update set is_test = excluded.is_test, file = excluded.file, line = excluded.line
      where (b.is_test, b.file, b.line) is distinct from (excluded.is_test, excluded.file, excluded.line)
    returning b.module
  )
  select coalesce(array_agg(module), '{}') into changed from (select module from gone union select module from fresh) c;
  return changed;
end $$;

create or replace function settle_graph(names text[]) returns void language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
declare
  owed text[];
  stirred text[];
begin
  if cardinality(names) = 0 then return; end if;
  perform lock_graph();
  perform plan_for(names);
  owed := settle_names(array(select distinct unnest(names)));
  owed := array(select unnest(owed) union select unnest(settle_kept(owed)));
  perform plan_for(owed);
  stirred := settle_edges(owed);
  perform settle_open(owed);
  stirred := stirred || settle_cycles(stirred);
  owed := array(select unnest(owed) union select unnest(stirred));
  -- Each round hands on what it changed to those that build on it. Builds are finite and what a module makes of one commit and its
  -- inputs is one thing, so it comes to rest; the bound is for a store in which that is not so.
  for round in 1 .. 1000 loop
    perform plan_for(owed);
    perform settle_closures(owed);
    declare
      moved text[] := settle_effective(owed);
      concerned text[] := settle_kept(owed);
      turned text[] := '{}';
    begin
      if cardinality(concerned) > 0 then
        turned := settle_edges(concerned);
        perform settle_open(concerned);
        turned := turned || settle_cycles(turned);
      end if;
      stirred := stirred || settle_standing(owed) || turned;
      exit when cardinality(moved) = 0 and cardinality(concerned) = 0;
      owed := array(
        select i.module from module_input i where i.input = any (moved)
        union
        select e.module from build_edge e where e.input = any (moved)
        union
        select unnest(concerned || turned));
      exit when cardinality(owed) = 0;
      -- One input less that is missing is a fact, also where another one keeps the closure unknown.
      perform bump_modules(array(select name from module where name = any (owed) and closure is null and stale_since is not null));
    end;
  end loop;
  perform tell_waiting(stirred);
end $$;

select settle_graph(array(select name from module));

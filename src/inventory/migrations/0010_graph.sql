-- The graph as it is kept: those of its functions that 0008 changes, and what is new.

-- What the imports of these modules were of, as far as a build of the commit that gives them was fit: the newest such build tells, by what it was made with.
create function settle_fit(names text[]) returns void language sql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
  with fit as materialized (
    select distinct on (m.name) m.name, b.id from unnest(names) n (name) join module m on m.name = n.name
    join build b on b.module = m.name and b.commit = m.edges_commit and b.verdict = 'fit'
    order by m.name, b.answered_at desc, b.id desc
  ), had as materialized (
    select f.name as module, x.language, x.name from fit f join build_input u on u.build_id = f.id
    cross join lateral jsonb_to_recordset(u.names) x (language text, name text)
    union
    select e.module, e.language, e.name from fit f join module_export e on e.module = f.name
  ), led as materialized (
    select distinct i.module, i.language, i.name, i.is_test from fit f join module_import i on i.module = f.name
    cross join unnest(i.candidates) c (name) join had h on (h.module, h.language, h.name) = (i.module, i.language, c.name)
  ), found as (
    select i.module, i.language, i.name, i.is_test, l.module is null as was_outside from fit f join module_import i on i.module = f.name
    left join led l on (l.module, l.language, l.name, l.is_test) = (i.module, i.language, i.name, i.is_test)
  )
  update module_import i set was_outside = f.was_outside from found f
  where (i.module, i.language, i.name, i.is_test) = (f.module, f.language, f.name, f.is_test) and i.was_outside is distinct from f.was_outside
$$;

-- Exports and imports of the commit that gives the edges. Returns these modules and those whose edges or conflicts may be
-- others by that.
create or replace function settle_names(names text[]) returns text[] language plpgsql as $$
declare
  moment timestamptz := clock_timestamp();
  moving text[] := array(
    select m.name from unnest(names) n (name) join module m on m.name = n.name join inspection i on i.module = m.name and i.commit = m.head_commit and i.outcome = 'valid'
    where m.edges_commit is distinct from m.head_commit order by m.name);
  touched_languages text[] := '{}';
  touched_names text[] := '{}';
  exporters text[] := names;
begin
  if cardinality(moving) > 0 then
    update module m set edges_commit = m.head_commit
    from (select name from module where name = any (moving) order by name for no key update) locked where m.name = locked.name;

    with wanted as (
      select distinct on (m.name, x.language, x.name) m.name as module, x.language, x.name, x.artifact, x.file, x.line
      from unnest(moving) n (name) join module m on m.name = n.name join inspection i on i.module = m.name and i.commit = m.edges_commit
      cross join lateral jsonb_to_recordset(i.exports) x (language text, name text, artifact text, file text, line int)
      order by m.name, x.language, x.name, x.artifact collate "C", x.file collate "C", x.line
    ), gone as (
      delete from module_export e
      using (
        select e.module, e.language, e.name from unnest(moving) n (name) join module_export e on e.module = n.name
        except select module, language, name from wanted
      ) g
      where (e.module, e.language, e.name) = (g.module, g.language, g.name)
      returning e.module, e.language, e.name, e.artifact, e.since
    ), remembered as (
      -- Which of them are kept indeed, settle_kept says.
      insert into kept_export (module, language, name, artifact, since) select * from gone on conflict do nothing
    ), fresh as (
      insert into module_export as e (module, language, name, artifact, file, line, since)
      select w.module, w.language, w.name, w.artifact, w.file, w.line, coalesce(k.since, moment)
      from wanted w left join kept_export k on (k.module, k.language, k.name) = (w.module, w.language, w.name)
      on conflict (module, language, name) do update set artifact = excluded.artifact, file = excluded.file, line = excluded.line
        where (e.artifact, e.file, e.line) is distinct from (excluded.artifact, excluded.file, excluded.line)
    ), touched as (
      select language, name from gone
      union
      select w.language, w.name from wanted w left join module_export e on (e.module, e.language, e.name) = (w.module, w.language, w.name)
      where e.artifact is distinct from w.artifact
    )
    select coalesce(array_agg(language), '{}'), coalesce(array_agg(name), '{}') into touched_languages, touched_names from touched;

    with wanted as (
      select distinct on (m.name, x.language, x.name, x.test) m.name as module, x.language, x.name, x.test as is_test, x.candidates, x.file, x.line
      from unnest(moving) n (name) join module m on m.name = n.name join inspection i on i.module = m.name and i.commit = m.edges_commit
      cross join lateral jsonb_to_recordset(i.imports) x (language text, name text, candidates text[], test boolean, file text, line int)
      order by m.name, x.language, x.name, x.test, x.file collate "C", x.line
    ), gone as (
      delete from module_import i
      using (
        select i.module, i.language, i.name, i.is_test from unnest(moving) n (name) join module_import i on i.module = n.name
        except select module, language, name, is_test from wanted
      ) g
      where (i.module, i.language, i.name, i.is_test) = (g.module, g.language, g.name, g.is_test)
    )
    -- One that moves from tests to code, or back, is what it was.
    insert into module_import as i (module, language, name, is_test, candidates, file, line, was_outside)
    select w.module, w.language, w.name, w.is_test, w.candidates, w.file, w.line,
      (select bool_and(o.was_outside) from module_import o where (o.module, o.language, o.name) = (w.module, w.language, w.name))
    from wanted w
    on conflict (module, language, name, is_test) do update set candidates = excluded.candidates, file = excluded.file, line = excluded.line
      where (i.candidates, i.file, i.line) is distinct from (excluded.candidates, excluded.file, excluded.line);

    with wanted as (
      select distinct i.module, i.language, c.name from unnest(moving) n (name) join module_import i on i.module = n.name cross join unnest(i.candidates) c (name)
    ), gone as (
      delete from import_candidate c
      using (
        select c.language, c.name, c.module from unnest(moving) n (name) join import_candidate c on c.module = n.name
        except select language, name, module from wanted
      ) g
      where (c.language, c.name, c.module) = (g.language, g.name, g.module)
    )
    insert into import_candidate (language, name, module) select language, name, module from wanted on conflict do nothing;
    perform settle_fit(moving);
  end if;

  exporters := array(
    select unnest(names)
    union
    select e.module from unnest(touched_languages, touched_names) t (language, name) join module_export e on (e.language, e.name) = (t.language, t.name));
  with found as (
    select n.name,
      coalesce(jsonb_agg(jsonb_build_object('name', e.name, 'module', holder.module) order by e.name, e.language) filter (where holder.module <> n.name), '[]') as conflicts
    from unnest(exporters) n (name)
    left join module_export e on e.module = n.name
    left join lateral (
      select o.module from module_export o where (o.language, o.name) = (e.language, e.name) order by o.since, o.module collate "C" limit 1
    ) holder on true
    group by n.name
  ), locked as (
    select m.name, f.conflicts from module m join found f on f.name = m.name where m.conflicts <> f.conflicts order by m.name for no key update of m
  )
  update module m set conflicts = l.conflicts from locked l where m.name = l.name;

  return array(
    select unnest(exporters)
    union
    select c.module from unnest(touched_languages, touched_names) t (language, name) join import_candidate c on (c.language, c.name) = (t.language, t.name));
end $$;

-- Returns the modules whose edges, or what is missing of them, may be others by that.
create function settle_kept(names text[]) returns text[] language plpgsql as $$
declare concerned text[];
begin
  with carried as materialized (
    select distinct on (m.name, x.language, x.name) m.name as module, x.language, x.name, x.artifact
    from unnest(names) n (name) join module m on m.name = n.name
    join build b on b.id = m.effective_build and b.commit is distinct from m.edges_commit
    join inspection i on i.module = m.name and i.commit = b.commit
    cross join lateral jsonb_to_recordset(i.exports) x (language text, name text, artifact text)
    order by m.name, x.language, x.name, x.artifact collate "C"
  ), wanted as (
    select c.* from carried c
    where not exists (select from module_export e where (e.module, e.language, e.name, e.artifact) = (c.module, c.language, c.name, c.artifact))
  ), gone as (
    delete from kept_export k
    using (
      select k.module, k.language, k.name from unnest(names) n (name) join kept_export k on k.module = n.name
      except select module, language, name from wanted
    ) g
    where (k.module, k.language, k.name) = (g.module, g.language, g.name)
    returning k.language, k.name
  ), fresh as (
    insert into kept_export as k (module, language, name, artifact, since)
    select w.module, w.language, w.name, w.artifact, coalesce(e.since, clock_timestamp())
    from wanted w left join module_export e on (e.module, e.language, e.name) = (w.module, w.language, w.name)
    on conflict (module, language, name) do update set artifact = excluded.artifact where k.artifact <> excluded.artifact
    returning k.language, k.name
  ), turned as (
    update module_export e set is_awaited = not e.is_awaited
    from unnest(names) n (name) join module m on m.name = n.name
    left join build b on b.id = m.effective_build
    join module_export o on o.module = m.name
    left join carried c on (c.module, c.language, c.name) = (o.module, o.language, o.name)
    where (e.module, e.language, e.name) = (o.module, o.language, o.name)
      and e.is_awaited <> (b.id is null or b.commit is distinct from m.edges_commit and c.module is null
        and exists (select from inspection i where i.module = m.name and i.commit = b.commit))
    returning e.language, e.name
  )
  select coalesce(array_agg(distinct c.module), '{}') into concerned
  from (select language, name from gone union select language, name from fresh union select language, name from turned) t
  join import_candidate c on (c.language, c.name) = (t.language, t.name);
  return concerned;
end $$;

-- Whether an edge leads to what the input's head exports and its effective build does not.
create function is_awaited(input text, edge_language text, edge_name text) returns boolean language sql stable as $$
  select exists (select from module_export e where (e.module, e.language, e.name) = (input, edge_language, edge_name) and e.is_awaited)
$$;

create function is_exported(wanted_language text, candidates text[]) returns boolean language sql stable as $$
  select exists (select from unnest(candidates) c (name) join module_export e on (e.language, e.name) = (wanted_language, c.name))
    or exists (select from unnest(candidates) c (name) join kept_export k on (k.language, k.name) = (wanted_language, c.name))
$$;

-- Whom an import leads to: of its candidates the most specific that any module exports; of several modules one that keeps it, for what it made
-- carries it, else the first. What an import was of when a build was fit is taken from it by no name that is awaited still; one that was
-- of outside stays so till then. One that is new waits for it: the code that has it may have moved there.
create function hit_of(importer text, import_language text, candidates text[], was_outside boolean) returns table (module text, artifact text, name text) language sql stable as $$
  select e.module, e.artifact, e.name from (
    select c.place, x.module, x.artifact, x.name, false as is_kept, x.since, x.is_awaited and x.module <> importer as is_awaited
    from unnest(candidates) with ordinality c (name, place) join module_export x on (x.language, x.name) = (import_language, c.name)
    union all
    select c.place, k.module, k.artifact, k.name, true, k.since, false
    from unnest(candidates) with ordinality c (name, place) join kept_export k on (k.language, k.name) = (import_language, c.name)
  ) e
  where not (e.is_awaited and coalesce(was_outside, false))
  order by e.is_awaited and was_outside is not null, e.place, (e.module = importer) desc, e.is_kept desc, e.since, e.module collate "C" limit 1
$$;

-- Imports joined with exports. What a module exports itself is inside it. Returns the modules whose edges changed.
create or replace function settle_edges(names text[]) returns text[] language plpgsql as $$
declare changed text[];
begin
  with wanted as (
    select distinct on (i.module, hit.module, hit.artifact, i.language, hit.name)
      i.module, hit.module as input, hit.artifact, i.language, hit.name, i.is_test, i.file, i.line
    from unnest(names) n (name)
    join module_import i on i.module = n.name
    cross join lateral hit_of(i.module, i.language, i.candidates, i.was_outside) hit
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

create function settle_open(names text[]) returns void language plpgsql as $$
begin
  with found as (
    select n.name, (
      select jsonb_build_object('name', i.name, 'file', i.file, 'line', i.line) from module_import i
      where i.module = n.name and i.was_outside is not true and not is_exported(i.language, i.candidates)
      order by i.is_test, i.file collate "C", i.line, i.name collate "C" limit 1
    ) as import
    from unnest(names) n (name)
  ), locked as (
    select m.name, f.import from module m join found f on f.name = m.name where m.open_import is distinct from f.import order by m.name for no key update of m
  )
  update module m set open_import = l.import from locked l where m.name = l.name;
end $$;

-- Inputs and closure of modules whose head is inspected: each direct edge at the input's effective build, and what that build
-- was made with, each at its own effective build now. What an effective build used and nobody makes any more is used as it was.
-- Returns the modules of which an input is missing by now, or no more.
drop function settle_closures(text[]);
create function settle_closures(names text[]) returns text[] language plpgsql as $$
declare turned text[];
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
    select m.name, m.closure as before, k.closure from known k join module m on m.name = k.name
    where m.closure is distinct from k.closure order by m.name for no key update of m
  ), moved as (
    update module m set closure = l.closure, progress_at = clock_timestamp() from locked l where m.name = l.name
    returning m.name, (l.closure is null) <> (l.before is null) as has_turned
  )
  select coalesce(array_agg(name) filter (where has_turned), '{}') into turned from moved;
  return turned;
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
    stirred := stirred || settle_closures(owed);
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

-- A build that was answered and left its head stale all the same (its inputs moved meanwhile) begins the waiting anew. What
-- a fit one did with and without is known from then on.
create or replace function settle_verdicts(ids text[]) returns void language plpgsql as $$
declare judged text[] := array(select distinct module from build where id = any (ids));
begin
  if cardinality(judged) = 0 then return; end if;
  perform lock_graph();
  update module m set stale_since = null
  from (select m.name from (select distinct b.module, b.commit from unnest(ids) n (id) join build b on b.id = n.id) b
        join module m on m.name = b.module and m.head_commit = b.commit
        where m.stale_since is not null order by m.name for no key update of m) locked
  where m.name = locked.name;
  perform settle_fit(judged);
  perform settle_graph(judged);
end $$;

drop trigger module_updated on module;
create trigger module_updated before update on module for each row
  when ((new.repository, new.ref, new.head_commit, new.trouble_kind, new.trouble_reason, new.held_at, new.held_why, new.held_build, new.approved_build, new.again_at, new.effective_build,
      new.edges_commit, new.closure, new.is_settling, new.is_in_cycle, new.conflicts, new.stale_since, new.open_import)
    is distinct from (old.repository, old.ref, old.head_commit, old.trouble_kind, old.trouble_reason, old.held_at, old.held_why, old.held_build, old.approved_build, old.again_at, old.effective_build,
      old.edges_commit, old.closure, old.is_settling, old.is_in_cycle, old.conflicts, old.stale_since, old.open_import))
  execute function bump_module_itself();


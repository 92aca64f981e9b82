-- What others build on is a module's effective build. As long as that is not of the commit that gives its exports (the head is being
-- built, failed, or took a name that another one has), what it exported stays exported too, and by the artifact that it has there: a head
-- that never became fit takes nothing from anyone. And what only that head exports, nobody can build on yet.

alter table module_export add column is_awaited boolean not null default false; -- there is an effective build, of another commit, and it does not export this

create table kept_export (
  module text not null references module (name) on delete cascade,
  language text not null,
  name text not null,
  artifact text not null,
  primary key (module, language, name)
);
create index kept_export_name on kept_export (language, name);

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
    insert into kept_export as k (module, language, name, artifact)
    select module, language, name, artifact from wanted
    on conflict (module, language, name) do update set artifact = excluded.artifact where k.artifact <> excluded.artifact
    returning k.language, k.name
  ), turned as (
    update module_export e set is_awaited = not e.is_awaited
    from unnest(names) n (name) join module m on m.name = n.name
    left join build b on b.id = m.effective_build and b.commit is distinct from m.edges_commit
      and exists (select from inspection i where i.module = m.name and i.commit = b.commit)
    where e.module = m.name
      and e.is_awaited <> (b.id is not null and not exists (select from carried c where (c.module, c.language, c.name) = (e.module, e.language, e.name)))
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

-- An import that no module exports is of outside, or of a module whose code has not been read yet: which of the two, nobody
-- knows before that. It is open as long as no build of the module was fit without it.

alter table module_import add column is_outside boolean not null default false; -- the head's build was fit, and no module exported it
create index module_import_undecided on module_import (module) where not is_outside;

alter table module add column open_import jsonb; -- the first that is neither exported nor known to be of outside: {name, file, line}
create index module_open on module (name) where open_import is not null and stale_since is not null;
create index module_unread on module (name) where edges_commit is null;
alter table module add column unread text; -- whom its line names as not inspected yet
create index module_names_unread on module (unread) where unread is not null;

create function is_exported(wanted_language text, candidates text[]) returns boolean language sql stable as $$
  select exists (select from unnest(candidates) c (name) join module_export e on (e.language, e.name) = (wanted_language, c.name))
    or exists (select from unnest(candidates) c (name) join kept_export k on (k.language, k.name) = (wanted_language, c.name))
$$;

-- Where one of these builds made the head as it is now fit, what nobody exports is of outside.
create function settle_outside(builds text[]) returns void language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
declare fit text[] := array(
  select m.name from unnest(builds) n (id) join build b on b.id = n.id and b.verdict = 'fit'
  join module m on m.name = b.module and m.edges_commit = b.commit and m.closure = b.closure);
begin
  if cardinality(fit) > 0 then
    update module_import i set is_outside = not i.is_outside where i.module = any (fit) and i.is_outside = is_exported(i.language, i.candidates);
  end if;
end $$;

create function settle_open(names text[]) returns void language plpgsql as $$
begin
  with found as (
    select n.name, (
      select jsonb_build_object('name', i.name, 'file', i.file, 'line', i.line) from module_import i
      where i.module = n.name and not i.is_outside and not is_exported(i.language, i.candidates)
      order by i.is_test, i.file collate "C", i.line, i.name collate "C" limit 1
    ) as import
    from unnest(names) n (name)
  ), locked as (
    select m.name, f.import from module m join found f on f.name = m.name where m.open_import is distinct from f.import order by m.name for no key update of m
  )
  update module m set open_import = l.import from locked l where m.name = l.name;
end $$;

-- Modules that may yet export what is open in another one, inspected at `seen`: those that never had a valid inspection, and those whose head
-- moved before that and is not inspected. One whose source is in trouble is not about to be.
create function uninspected(seen timestamptz) returns table (name text, came timestamptz) language sql stable as $$
  select m.name, greatest(m.added_at, m.head_since) from module m
  where m.edges_commit is null and m.trouble_kind is null
    and not exists (select from inspection i where i.module = m.name and i.commit = m.head_commit)
  union all
  select m.name, m.head_since from module m
  where m.stale_since <= seen and m.edges_commit is not null and m.trouble_kind is null
    and not exists (select from inspection i where i.module = m.name and i.commit = m.head_commit)
$$;

-- What a stale module with an open import waits for: one of those, which is likely the last to be inspected, and when any of them last got on.
create function open_import_of(start text) returns jsonb language sql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
  with unread as (
    select u.name, u.came, r.at, x.head_commit is null as is_unread from module m
    join inspection i on i.module = m.name and i.commit = m.head_commit
    cross join uninspected(i.answered_at) u
    join module x on x.name = u.name
    left join lateral (
      select max(greatest(r.requested_at, r.published_at, r.taken_at, r.beat_at)) as at from request r
      where r.module = u.name and r.kind = 'inspect' and r.state in ('requested', 'published', 'taken') and r.trouble_since is null
    ) r on true
    where m.name = start
  ), said as (
    select (array_agg(name order by is_unread desc, came desc, name))[1] as module, count(*) > 1 as "hasOthers", iso(greatest(max(came), max(at))) as "progressAt" from unread
  )
  select m.open_import || to_jsonb(s) from module m cross join said s where m.name = start and s.module is not null
$$;

-- A stale module with an open import is told once nothing is left that may export it, and not of each that turned out not to.
-- `moved`: when what was inspected, or went away, became stale; those that were inspected before did not wait for it.
create function tell_open(moved timestamptz) returns void language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
begin
  if exists (select from module where open_import is not null and stale_since is not null) and not exists (select from uninspected('-infinity')) then
    perform bump_modules(array(
      select m.name from module m join inspection i on i.module = m.name and i.commit = m.head_commit and i.outcome = 'valid'
      where m.open_import is not null and m.stale_since is not null and i.answered_at >= moved and not exists (select from uninspected(i.answered_at))));
  end if;
end $$;

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

-- Whoever records that a source is in trouble locks the graph before, as for a head that moves.
create or replace function settle_from_heads() returns trigger language plpgsql as $$
declare moved text[] := array(
  select name from (select name, head_commit from new_rows except select name, head_commit from old_rows) moved);
begin
  perform settle_graph(moved);
  -- A head may move back to what is inspected.
  if cardinality(moved) > 0 or exists (select name from new_rows where trouble_kind is not null except select name from old_rows where trouble_kind is not null) then
    perform lock_graph();
    perform tell_open('-infinity');
  end if;
  return null;
end $$;

create or replace function settle_from_removed() returns trigger language plpgsql as $$
begin
  perform settle_graph(array(
    select e.module from old_rows o join build_edge e on e.input = o.name
    union
    select i.module from old_rows o join module_input i on i.input = o.name
    union
    select m.name from old_rows o join module m on m.conflicts <> '[]' and m.conflicts @> jsonb_build_array(jsonb_build_object('module', o.name))));
  perform lock_graph();
  perform tell_open('-infinity');
  return null;
end $$;

create or replace function settle_from_inspections() returns trigger language plpgsql as $$
declare
  inspected text[] := array(select distinct module from new_rows);
  moved timestamptz;
begin
  perform lock_graph();
  select min(case when edges_commit is null then '-infinity' else coalesce(stale_since, '-infinity') end) into moved from module where name = any (inspected);
  perform bump_modules(inspected);
  perform settle_graph(inspected);
  perform tell_open(moved);
  return null;
end $$;

-- A build that was answered and left its head stale all the same (its inputs moved meanwhile) begins the waiting anew. What
-- a fit one did without is of outside.
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
  perform settle_outside(ids);
  perform settle_graph(judged);
end $$;

drop trigger module_updated on module;
create trigger module_updated before update on module for each row
  when ((new.repository, new.ref, new.head_commit, new.trouble_kind, new.trouble_reason, new.held_at, new.held_why, new.held_build, new.approved_build, new.again_at, new.effective_build,
      new.edges_commit, new.closure, new.is_settling, new.is_in_cycle, new.conflicts, new.stale_since, new.open_import)
    is distinct from (old.repository, old.ref, old.head_commit, old.trouble_kind, old.trouble_reason, old.held_at, old.held_why, old.held_build, old.approved_build, old.again_at, old.effective_build,
      old.edges_commit, old.closure, old.is_settling, old.is_in_cycle, old.conflicts, old.stale_since, old.open_import))
  execute function bump_module_itself();

select settle_outside(array(select effective_build from module where effective_build is not null));
select settle_open(array(select name from module));
select settle_graph(array(select name from module));

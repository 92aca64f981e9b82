-- An import that no module exports is of outside, or of a module whose code has not been read yet: which of the two, nobody
-- knows before that. It is open as long as no build of the module was fit without it.

alter table module_import add column is_outside boolean not null default false; -- the head's build was fit, and no module exported it
create index module_import_undecided on module_import (module) where not is_outside;

alter table module add column open_import jsonb; -- the first that is neither exported nor known to be of outside: {name, file, line}
create index module_open on module (name) where open_import is not null and stale_since is not null;
create index module_unread on module (name) where edges_commit is null;

create function is_exported(wanted_language text, candidates text[]) returns boolean language sql stable as $$
  select exists (select from unnest(candidates) c (name) join module_export e on (e.language, e.name) = (wanted_language, c.name))
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
    declare moved text[] := settle_effective(owed);
    begin
      stirred := stirred || settle_standing(owed);
      exit when cardinality(moved) = 0;
      owed := array(
        select i.module from module_input i where i.input = any (moved)
        union
        select e.module from build_edge e where e.input = any (moved));
      exit when cardinality(owed) = 0;
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

-- The module graph. Edges are what code imports joined with what code exports; a module's closure is what a build of its
-- head would be of. Both are kept by settle_graph, in the transaction that changes what they are made from and only for
-- the modules that are affected; whatever it changes on a module's row bumps that module's facts version.

alter table inspection
  add column exports jsonb not null default '[]',
  add column imports jsonb not null default '[]', -- with those carried over from before, where files could not be parsed
  add column unknown jsonb not null default '[]';

alter table module
  add column edges_commit text,                        -- whose inspection gives exports and imports: the head's if it is valid, else the last valid one
  add column closure text,                             -- of the head; null while it is not known: not inspected, invalid, or an input has no artifact yet
  add column is_settling boolean not null default false, -- is about to have another artifact: not inspected, or without a verdict for its closure
  add column is_in_cycle boolean not null default false, -- builds on itself through build edges
  add column conflicts jsonb not null default '[]',    -- names that it exports and another one exported before: [{name, module}]
  add column stale_since timestamptz,                  -- since when the head's closure has had no verdict, whatever moved since
  add column progress_at timestamptz;                  -- when its closure, or what it waits for, last got on
create index module_in_cycle on module (name) where is_in_cycle;
create index module_stale on module (name) where stale_since is not null;
create index module_in_conflict on module (name) where conflicts <> '[]';

alter table build add column differing jsonb; -- what a second build of the same made otherwise, where an operator asked: [{artifact, file}]

create table module_export (
  module text not null references module (name) on delete cascade,
  language text not null,
  name text not null,
  artifact text not null,
  file text not null,
  line int not null,
  since timestamptz not null,             -- of two that export one name the first keeps it
  primary key (module, language, name)
);
create index module_export_name on module_export (language, name);

create table module_import (
  module text not null references module (name) on delete cascade,
  language text not null,
  name text not null,
  is_test boolean not null,
  candidates text[] not null,             -- names of packages that it could be of, the most specific first
  file text not null,
  line int not null,
  primary key (module, language, name, is_test)
);

-- Who would be concerned if a name were exported.
create table import_candidate (
  language text not null,
  name text not null,
  module text not null references module (name) on delete cascade,
  primary key (language, name, module)
);
create index import_candidate_module on import_candidate (module);

-- Edges in force. `name` is the exported name; evidence is the first import of it, of code before tests.
create table build_edge (
  module text not null references module (name) on delete cascade,
  input text not null,
  artifact text not null,
  language text not null,
  name text not null,
  is_test boolean not null,               -- only tests import it
  file text not null,
  line int not null,
  primary key (module, input, artifact, language, name)
);
create index build_edge_input on build_edge (input);

-- What an answered build used, as the builder fetched it.
create table build_input (
  build_id text not null references build (id) on delete cascade,
  module text not null,
  artifact text not null,
  digest text not null,
  is_test boolean not null,
  kind text not null,
  repository text not null,
  blob text not null,
  size bigint not null,
  commit text not null,
  names jsonb not null,
  primary key (build_id, module, artifact)
);
create index build_input_module on build_input (module, artifact, digest);

-- What a build of the head would use now, transitively: the inputs of module.closure, or of the last one that was known.
create table module_input (
  module text not null references module (name) on delete cascade,
  input text not null,
  artifact text not null,
  digest text not null,
  is_test boolean not null,
  primary key (module, input, artifact)
);
create index module_input_input on module_input (input);

-- sha256 of the canonical JSON of {commit, inputs}, as src/domain/closure.ts has it. Names, commits and digests need no escaping.
create function closure_of(commit text, inputs jsonb) returns text language sql immutable strict parallel safe as $$
  select 'sha256:' || encode(sha256(convert_to('{"commit":"' || commit || '","inputs":[' || coalesce(string_agg(
    '{"artifact":"' || i.artifact || '","digest":"' || i.digest || '","module":"' || i.module || '"}', ',' order by i.module collate "C", i.artifact collate "C"), '')
    || ']}', 'UTF8')), 'hex')
  from jsonb_to_recordset(inputs) i (module text, artifact text, digest text)
$$;

-- One writer of the graph at a time: two that do not see one another would each miss the edge between them. Whoever is
-- going to write takes it before it locks the row of any module, so that nobody waits in a circle.
create function lock_graph() returns void language sql as $$
  select pg_advisory_xact_lock(7254822)
$$;

-- Exports and imports of the commit that gives the edges. Returns these modules and those whose edges or conflicts may be
-- others by that.
create function settle_names(names text[]) returns text[] language plpgsql as $$
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
      returning e.language, e.name
    ), fresh as (
      insert into module_export as e (module, language, name, artifact, file, line, since)
      select w.module, w.language, w.name, w.artifact, w.file, w.line, moment from wanted w
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
    insert into module_import as i (module, language, name, is_test, candidates, file, line)
    select w.module, w.language, w.name, w.is_test, w.candidates, w.file, w.line from wanted w
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

-- Imports joined with exports: the most specific candidate that any module exports, of several modules the first. What a
-- module exports itself is inside it. Returns the modules whose edges changed.
create function settle_edges(names text[]) returns text[] language plpgsql as $$
declare changed text[];
begin
  with wanted as (
    select distinct on (i.module, hit.module, hit.artifact, i.language, hit.name)
      i.module, hit.module as input, hit.artifact, i.language, hit.name, i.is_test, i.file, i.line
    from unnest(names) n (name)
    join module_import i on i.module = n.name
    cross join lateral (
      select e.module, e.artifact, e.name from unnest(i.candidates) with ordinality c (name, place)
      join module_export e on (e.language, e.name) = (i.language, c.name)
      order by c.place, (e.module = i.module) desc, e.since, e.module collate "C" limit 1
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

-- Who builds on itself, after the edges of some modules changed. A new cycle goes through one of those; an old one that
-- may be broken is marked. Returns the modules whose mark changed.
create function settle_cycles(names text[]) returns text[] language plpgsql as $$
declare
  suspects text[];
  changed text[];
begin
  suspects := array(
    with recursive reach (start, node) as (
      select e.module, e.input from unnest(names) n (name) join build_edge e on e.module = n.name
      where not e.is_test and exists (select from build_edge b where b.input = e.module and not b.is_test)
      union
      select r.start, e.input from reach r join build_edge e on e.module = r.node and not e.is_test where r.node <> r.start
    ), around (node) as (
      select start from reach where node = start
      union
      select e.input from around a join build_edge e on e.module = a.node and not e.is_test
    )
    select node from around union select name from module where is_in_cycle);
  if cardinality(suspects) = 0 then return '{}'; end if;
  with recursive reach (start, node) as (
    select e.module, e.input from build_edge e where e.module = any (suspects) and not e.is_test
    union
    select r.start, e.input from reach r join build_edge e on e.module = r.node and not e.is_test where r.node <> r.start
  ), found as (
    select s.name, exists (select from reach r where r.start = s.name and r.node = s.name) as is_in_cycle from unnest(suspects) s (name)
  ), locked as (
    select m.name, f.is_in_cycle from module m join found f on f.name = m.name where m.is_in_cycle <> f.is_in_cycle order by m.name for no key update of m
  ), moved as (
    update module m set is_in_cycle = l.is_in_cycle from locked l where m.name = l.name returning m.name
  )
  select coalesce(array_agg(name), '{}') into changed from moved;
  return changed;
end $$;

-- Inputs and closure of modules whose head is inspected: each direct edge at the input's effective build, and what that build
-- was made with, each at its own effective build now. What an effective build used and nobody makes any more is used as it was.
create function settle_closures(names text[]) returns void language plpgsql as $$
begin
  with recursive ready as materialized (
    select m.name, m.head_commit from unnest(names) n (name) join module m on m.name = n.name
    join inspection i on i.module = m.name and i.commit = m.head_commit and i.outcome = 'valid'
  ), walk (module, input, artifact, is_test, recorded) as (
    select e.module, e.input, e.artifact, e.is_test, null::text from ready r join build_edge e on e.module = r.name
    union
    select w.module, b.module, b.artifact, w.is_test, b.digest
    from walk w
    join module z on z.name = w.input
    join artifact a on a.build_id = z.effective_build and a.name = w.artifact
    join build_input b on b.build_id = z.effective_build and not b.is_test
    where b.module <> w.module
  ), wanted as materialized (
    select w.module, w.input, w.artifact, bool_and(w.is_test) as is_test, coalesce(min(a.digest), max(w.recorded)) as digest
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
      select module, null, input, artifact, digest, digest is not null from wanted
    ) u
    group by u.name
  ), locked as (
    select m.name, k.closure from known k join module m on m.name = k.name
    where m.closure is distinct from k.closure order by m.name for no key update of m
  )
  update module m set closure = l.closure, progress_at = clock_timestamp() from locked l where m.name = l.name;
end $$;

-- What others see of a build: its artifacts, and what they were made with.
create function outputs_of(build text) returns text language plpgsql stable strict as $$
begin
  return concat(
    (select string_agg(a.name || '@' || a.digest, ' ' order by a.name) from artifact a where a.build_id = build), '|',
    (select string_agg(i.module || '/' || i.artifact || '@' || i.digest, ' ' order by i.module, i.artifact) from build_input i where i.build_id = build and not i.is_test));
end $$;

-- What others build against and what may be declared: the first fit build of the closure as it is now, as long as its newest
-- answer is not a failure; else the fit build of the head's commit that was asked for last; else what was before. Source
-- decides, never finishing order. Returns the modules of which others see another build by that.
drop function settle_effective(text[]);
create function settle_effective(names text[]) returns text[] language plpgsql as $$
declare changed text[];
begin
  with choice as (
    select m.name, m.effective_build as before, coalesce(
      (select fit.id from (
         select b.verdict from build b where b.module = m.name and b.closure = m.closure and b.verdict is not null order by b.try_number desc, b.id desc limit 1
       ) newest
       cross join lateral (
         select b.id from build b where b.module = m.name and b.closure = m.closure and b.verdict = 'fit' order by b.try_number, b.id limit 1
       ) fit
       where newest.verdict = 'fit'),
      (select b.id from build b join request r on r.id = b.id
       where b.module = m.name and b.commit = m.head_commit and b.verdict = 'fit' order by r.requested_at desc, b.id desc limit 1),
      m.effective_build) as after
    from unnest(names) n (name) join module m on m.name = n.name
  ), locked as (
    select m.name, c.before, c.after from module m join choice c on c.name = m.name where c.after is distinct from c.before order by m.name for no key update of m
  ), moved as (
    update module m set effective_build = l.after from locked l where m.name = l.name returning m.name, l.before, l.after
  )
  select coalesce(array_agg(name) filter (where outputs_of(before) is distinct from outputs_of(after)), '{}') into changed from moved;
  return changed;
end $$;

-- Whether a module is about to have another artifact, and since when it is stale. Returns those of which the first changed.
create function settle_standing(names text[]) returns text[] language plpgsql as $$
declare changed text[];
begin
  with standing as (
    select m.name, m.is_settling as was_settling,
      m.head_commit is not null and (i.outcome is null or i.outcome = 'valid' and not has.verdict and not m.is_in_cycle and m.conflicts = '[]') as is_settling,
      case when m.head_commit is null or i.outcome = 'invalid' or has.verdict then null
        when i.outcome is null then coalesce(m.stale_since, m.head_since, now())
        else coalesce(m.stale_since, now()) end as stale_since
    from unnest(names) n (name)
    join module m on m.name = n.name
    left join inspection i on i.module = m.name and i.commit = m.head_commit
    cross join lateral (
      select coalesce((select true from build b where i.outcome = 'valid' and b.module = m.name and b.closure = m.closure and b.verdict is not null limit 1), false) as verdict
    ) has
  ), locked as (
    select s.* from module m join standing s on s.name = m.name
    where (m.is_settling, m.stale_since) is distinct from (s.is_settling, s.stale_since) order by m.name for no key update of m
  ), moved as (
    update module m set is_settling = l.is_settling, stale_since = l.stale_since from locked l where m.name = l.name
    returning m.name, l.is_settling <> l.was_settling as has_turned
  )
  select coalesce(array_agg(name) filter (where has_turned), '{}') into changed from moved;
  return changed;
end $$;

-- What settles, or moves its edges, is a fact of every stale module that builds on it at whatever distance. Others do not look at it.
create function tell_waiting(names text[]) returns void language plpgsql as $$
declare waiting text[];
begin
  if cardinality(names) = 0 then return; end if;
  if exists (select from module where stale_since is not null and not name = any (names)) then
    waiting := array(
      with recursive above (name) as (
        select unnest(names) union select e.module from above a join build_edge e on e.input = a.name
      )
      select m.name from above a join module m on m.name = a.name where m.stale_since is not null);
  else
    waiting := array(select name from module where name = any (names) and stale_since is not null);
  end if;
  perform bump_modules(waiting);
  update module set progress_at = clock_timestamp() where name = any (waiting);
end $$;

-- What is affected is few as a rule, and many at once when a whole mesh is: those are planned by their number.
create function plan_for(names text[]) returns void language plpgsql as $$
begin
  perform set_config('plan_cache_mode', case when cardinality(names) > 100 then 'force_custom_plan' else 'force_generic_plan' end, true);
end $$;

-- Makes the graph of these modules what it is, and of all that are affected by that. Doing it again changes nothing. Its
-- statements are long and its arrays short: planning each anew would cost more than all the rest, and reading whole tables
-- would make it a matter of the mesh's size.
create function settle_graph(names text[]) returns void language plpgsql
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

-- Who cannot forget it: whatever the graph is made from settles it --------------------------------------------------

-- New rows are told from old ones by their difference: a join of the two is planned for the few rows of its first time.
create function settle_from_heads() returns trigger language plpgsql as $$
declare moved text[] := array(
  select name from (select name, head_commit from new_rows except select name, head_commit from old_rows) moved);
begin
  perform settle_graph(moved);
  return null;
end $$;
create trigger module_head_moved after update on module referencing new table as new_rows old table as old_rows for each statement execute function settle_from_heads();

create function settle_from_added() returns trigger language plpgsql as $$
begin
  perform settle_graph(array(select name from new_rows where head_commit is not null));
  return null;
end $$;
create trigger module_added after insert on module referencing new table as new_rows for each statement execute function settle_from_added();

-- Its names and its own edges went with its row; the edges to it go now, or lead to another that exports the same name.
create function settle_from_removed() returns trigger language plpgsql as $$
begin
  perform settle_graph(array(
    select e.module from old_rows o join build_edge e on e.input = o.name
    union
    select i.module from old_rows o join module_input i on i.input = o.name
    union
    select m.name from old_rows o join module m on m.conflicts <> '[]' and m.conflicts @> jsonb_build_array(jsonb_build_object('module', o.name))));
  return null;
end $$;
create trigger module_removed after delete on module referencing old table as old_rows for each statement execute function settle_from_removed();

create function settle_from_inspections() returns trigger language plpgsql as $$
declare inspected text[] := array(select distinct module from new_rows);
begin
  perform lock_graph();
  perform bump_modules(inspected);
  perform settle_graph(inspected);
  return null;
end $$;
drop trigger inspection_inserted on inspection;
create trigger inspection_inserted after insert on inspection referencing new table as new_rows for each statement execute function settle_from_inspections();

-- A build that was answered and left its head stale all the same (its inputs moved meanwhile) begins the waiting anew.
create function settle_verdicts(ids text[]) returns void language plpgsql as $$
declare judged text[] := array(select distinct module from build where id = any (ids));
begin
  if cardinality(judged) = 0 then return; end if;
  perform lock_graph();
  update module m set stale_since = null
  from (select m.name from (select distinct b.module, b.commit from unnest(ids) n (id) join build b on b.id = n.id) b
        join module m on m.name = b.module and m.head_commit = b.commit
        where m.stale_since is not null order by m.name for no key update of m) locked
  where m.name = locked.name;
  perform settle_graph(judged);
end $$;

create or replace function bump_modules_from_builds() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct module from (
      select module, id, verdict, reason, inputs from new_rows except select module, id, verdict, reason, inputs from old_rows) changed));
  perform settle_verdicts(array(
    select id from (select id, verdict from new_rows except select id, verdict from old_rows) judged));
  return null;
end $$;

create function bump_modules_from_new_builds() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(select distinct module from new_rows));
  perform settle_verdicts(array(select id from new_rows where verdict is not null));
  return null;
end $$;
drop trigger build_inserted on build;
create trigger build_inserted after insert on build referencing new table as new_rows for each statement execute function bump_modules_from_new_builds();

drop trigger module_updated on module;
create trigger module_updated before update on module for each row
  when ((new.repository, new.ref, new.head_commit, new.trouble_kind, new.trouble_reason, new.held_at, new.held_why, new.held_build, new.approved_build, new.again_at, new.effective_build,
      new.edges_commit, new.closure, new.is_settling, new.is_in_cycle, new.conflicts, new.stale_since)
    is distinct from (old.repository, old.ref, old.head_commit, old.trouble_kind, old.trouble_reason, old.held_at, old.held_why, old.held_build, old.approved_build, old.again_at, old.effective_build,
      old.edges_commit, old.closure, old.is_settling, old.is_in_cycle, old.conflicts, old.stale_since))
  execute function bump_module_itself();

-- Waiting, as one module's facts say it -----------------------------------------------------------------------------

create function is_missing(input text, artifact_name text) returns boolean language sql stable as $$
  select not exists (select from module z join artifact a on a.build_id = z.effective_build and a.name = artifact_name where z.name = input)
$$;

-- Breadth first along edges: every module that is reached, and from which one first; `closing` is the one that leads back to
-- the start. Only build edges; or, where `only_missing`, edges of code and tests to what has no artifact yet.
create function reach_of(start text, only_missing boolean, out nodes text[], out parents text[], out closing text) language plpgsql stable as $$
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
      where e.input = start and e.module = any (frontier) and (not e.is_test or only_missing) and (not only_missing or is_missing(e.input, e.artifact));
    end if;
    select coalesce(array_agg(f.input), '{}'), coalesce(array_agg(f.module), '{}') into frontier, origins
    from (
      select distinct on (e.input) e.input, e.module from build_edge e
      where e.module = any (frontier) and e.input <> all (nodes) and (not e.is_test or only_missing) and (not only_missing or is_missing(e.input, e.artifact))
      order by e.input, e.module
    ) f;
    nodes := nodes || frontier;
    parents := parents || origins;
  end loop;
end $$;

create function path_to(nodes text[], parents text[], node text) returns text[] language plpgsql immutable as $$
declare path text[] := array[node];
begin
  -- A parent stands before its child, so it ends at the start, which has none.
  while parents[array_position(nodes, path[1])] is not null loop
    path := parents[array_position(nodes, path[1])] || path;
  end loop;
  return path;
end $$;

-- settling, missing, cycle and bootstrap of a stale module.
create function waits_of(start text) returns jsonb language plpgsql stable
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set random_page_cost = 1.1 as $$
declare
  build record := reach_of(start, false);
  first_fit record := reach_of(start, true);
  missing jsonb;
begin
  select coalesce(jsonb_agg(to_jsonb(f) order by f.module), '[]') into missing from (
    select distinct on (z.name) z.name as module,
      case when b.id is null then z.name || ' has had no fit build yet' else z.name || ' at ' || left(b.commit, 7) || ' makes no artifact ' || e.artifact end as because,
      iso(m.stale_since) as since, not z.is_settling as "needsPerson"
    from module m join build_edge e on e.module = m.name join module z on z.name = e.input left join build b on b.id = z.effective_build
    where m.name = start and is_missing(e.input, e.artifact) order by z.name, e.artifact
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

select settle_graph(array(select name from module));

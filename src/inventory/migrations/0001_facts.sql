-- The only store of facts. Everything a module's comparison reads bumps module.facts_version by the triggers below,
-- set-based, so that no writer can forget it.

create table setting (
  key text primary key,
  value jsonb not null
);

create table token (
  name text primary key,
  hash text not null unique,              -- sha256 of the token, never the token
  created_at timestamptz not null default now()
);

create table module (
  name text primary key,
  repository text not null,
  ref text not null,
  added_at timestamptz not null default now(),
  webhook_secret text,                    -- sealed with the mesh key

  -- what git last said
  head_commit text,
  head_since timestamptz,
  trouble_kind text check (trouble_kind in ('unreadable', 'absent')),
  trouble_reason text,
  trouble_since timestamptz,
  read_at timestamptz,
  next_read_at timestamptz not null default now(),
  nudged_until timestamptz,               -- an event promised a change: read again often until then or until the head moves

  -- what an operator decided
  held_at timestamptz,
  held_by text,
  held_why text,
  held_build text,                        -- set by a rollback: the build that the hold is about
  approved_build text,                    -- policy ask: declare this one
  approved_by text,
  again_at timestamptz,                   -- one more try of the head's closure
  again_by text,

  effective_build text,

  -- the comparison
  facts_version bigint not null default 1,
  changed_at timestamptz not null default now(), -- since when a comparison is owed, while one is
  compared_version bigint not null default 0,
  nudged_version bigint not null default 0,
  compared_at timestamptz,
  due_at timestamptz,
  situation text,
  verdict text,
  next text,
  line text,
  reason text,
  since timestamptz,
  needs_person boolean not null default false,
  in_step boolean not null default false,
  counts jsonb
);
create index module_changed on module (name) where facts_version <> compared_version;
create index module_due on module (due_at) where due_at is not null;
create index module_next_read on module (next_read_at);
create index module_repository on module (repository);

-- Something asked of a builder: an inspection or a build. requested → published → taken → answered, or cancelled.
create table request (
  id text primary key,
  kind text not null check (kind in ('inspect', 'build')),
  module text not null references module (name) on delete cascade,
  commit text not null,
  closure text not null,                  -- of a build; empty for an inspection
  platform text not null,                 -- of a build; 'any' for an inspection
  body jsonb not null,                    -- what is published, without the attempt
  state text not null default 'requested' check (state in ('requested', 'published', 'taken', 'answered', 'cancelled')),
  attempt int not null default 1,
  requested_at timestamptz not null default now(),
  published_at timestamptz,
  taken_at timestamptz,
  taken_by text,
  beat_at timestamptz,
  progress_at timestamptz,
  step text,
  answered_at timestamptz,
  retry_at timestamptz,
  trouble_reason text,
  trouble_since timestamptz,
  lost_attempts int not null default 0,
  stop_reason text,                       -- an operator or a newer commit wants it to stop
  stopped_by text,                        -- the operator: such a build has failed by decision, and is not built again unasked
  completed_at timestamptz                -- when what waits for it in Temporal was told how it ended
) with (fillfactor = 70);
create index request_open on request (module) where state in ('requested', 'published', 'taken');
-- One open request for one thing, whoever asks at the same moment.
create unique index request_once on request (module, kind, commit, closure) where state in ('requested', 'published', 'taken') and stop_reason is null;
create index request_uncompleted on request (id) where state in ('answered', 'cancelled') and completed_at is null;
create index request_answered on request (answered_at) where state = 'answered';
create index request_module on request (module, requested_at);

create table inspection (
  module text not null references module (name) on delete cascade,
  commit text not null,
  request_id text not null,
  outcome text not null check (outcome in ('valid', 'invalid')),
  manifest jsonb,                         -- as written by its author
  problems jsonb not null default '[]',
  notes jsonb not null default '[]',
  answered_at timestamptz not null,
  primary key (module, commit)
);

create table build (
  id text primary key references request (id) on delete cascade,
  module text not null references module (name) on delete cascade,
  commit text not null,
  closure text not null,
  inputs jsonb not null default '[]',     -- the input closure as the builder fetched it
  try_number int not null default 1,
  verdict text check (verdict in ('fit', 'failed')),
  reason text,
  failed_step text,
  answered_at timestamptz,
  built_by text,
  provenance text,
  log text,
  steps jsonb not null default '{}',
  not_reproducible boolean not null default false,
  asked_by text
);
create index build_closure on build (module, closure, try_number);
create index build_commit on build (module, commit);

create table artifact (
  build_id text not null references build (id) on delete cascade,
  name text not null,
  kind text not null,
  repository text not null,
  digest text not null,
  blob text not null,
  size bigint not null,
  primary key (build_id, name)
);
create index artifact_digest on artifact (digest);

-- Every answer ever taken in, once a (request, attempt).
create table answer (
  request_id text not null references request (id) on delete cascade,
  attempt int not null,
  body jsonb not null,
  received_at timestamptz not null default now(),
  primary key (request_id, attempt)
);

-- The log of what runs now, for following it; the whole log is kept in the registry.
create table log_line (
  request_id text not null references request (id) on delete cascade,
  attempt int not null,
  number int not null,
  text text not null,
  primary key (request_id, attempt, number)
);

create table builder (
  name text primary key,
  platforms text[] not null,
  public_key text not null,
  version text not null,
  last_beat_at timestamptz not null,
  busy jsonb not null default '[]'
);

create table node (
  name text primary key,
  site text not null default 'home',
  facts jsonb not null default '{}',      -- --set KEY=VALUE
  broker_user text not null,
  added_at timestamptz not null default now(),
  public_key text,                        -- taken from the first beat, shown
  key_refused text,                       -- a later, different key that was refused
  epoch text,
  epoch_since timestamptz,
  epochs int not null default 0,
  past_epochs text[] not null default '{}', -- so that a late report of before is not taken for a new beginning
  host_version text,
  reads jsonb,
  last_beat_at timestamptz,
  last_number bigint not null default 0,  -- newest report number of this epoch
  received_sequence bigint not null default 0,
  applied_sequence bigint not null default 0,
  received_digest text,
  applied_digest text,
  refused_sequence bigint,
  refused_reason text,
  refused_since timestamptz,

  -- sending: version is what a declaration would be derived from
  version bigint not null default 1,
  derived_version bigint not null default 0,
  derived_digest text,
  own_sequence bigint not null default 0, -- highest ever taken, confirmed or not
  sent_digest text,
  sent_sequence bigint,
  sent_at timestamptz,
  send_trouble text,
  send_trouble_since timestamptz,
  send_attempts int not null default 0,
  send_after timestamptz,                 -- backoff
  send_again boolean not null default false,
  lagging_beats int not null default 0,   -- beats in a row that named another declaration than the one sent
  not_worked_out text,
  not_worked_out_since timestamptz
) with (fillfactor = 60);
create index node_to_send on node (name) where version <> derived_version or send_again or (not_worked_out is null and derived_digest is distinct from sent_digest);

create table placement (
  module text not null references module (name) on delete cascade,
  node text not null references node (name) on delete cascade,
  assigned_at timestamptz not null default now(),
  assigned_by text,
  build_id text references build (id),
  declared_at timestamptz,
  declared_by text,
  -- what a declaration derived for that build says of this module here
  want_build text,
  want_digest text,
  want_sequence bigint,                   -- first sequence that carried this want_digest
  -- what the node last said
  applied_build text,
  applied_digest text,
  applied_at timestamptz,
  applied_sequence bigint,
  -- kept by the trigger below
  is_applied boolean not null default false,
  outstanding_since timestamptz,
  failing_resources text[],
  failing_count int not null default 0,
  failing_since timestamptz,
  failing_message text,
  primary key (module, node)
) with (fillfactor = 70);
create index placement_node on placement (node);

-- What was sent, newest last; a confirmed row was taken by the broker.
create table declaration (
  node text not null references node (name) on delete cascade,
  sequence bigint not null,
  digest text not null,
  content jsonb not null,
  created_at timestamptz not null default now(),
  confirmed_at timestamptz,
  primary key (node, sequence)
);

create table report (
  node text not null references node (name) on delete cascade,
  epoch text not null,
  number bigint not null,
  received_at timestamptz not null default now(),
  body jsonb not null,
  primary key (node, epoch, number)
);

-- An operator's intent, written before anything answers, so that it outlives what carries it out.
create table intent (
  id text primary key,
  verb text not null,
  module text,
  node text,
  build_id text,
  who text not null,
  why text not null,
  at timestamptz not null default now(),
  says text not null default ''           -- what it was answered, for whoever asks again with the same id
);
create index intent_module on intent (module, at);
create index intent_node on intent (node, at) where node is not null;

create table dead_letter (
  id bigint generated always as identity primary key,
  queue text not null,
  reason text not null,
  body text not null,
  at timestamptz not null default now()
);

-- Words ----------------------------------------------------------------------------------------------------------

-- A time as the rest of Tally writes it.
create function iso(at timestamptz) returns text language sql stable strict parallel safe as $$
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- sha256 of the canonical JSON of {commit, inputs}, as src/domain/closure.ts has it. Modules do not build on one another yet.
create function closure_of(commit text) returns text language sql immutable strict parallel safe as $$
  select 'sha256:' || encode(sha256(('{"commit":"' || commit || '","inputs":[]}')::bytea), 'hex')
$$;

-- Three attempts in a row lost or ended by the environment while builders ended other work.
create function is_suspect(r request) returns boolean language sql stable as $$
  select r.lost_attempts >= 3 and exists (select from request other where other.state = 'answered' and other.answered_at > r.trouble_since)
$$;

-- What others build against and what may be declared: the fit build of the head as git says it now, else what was before.
-- The first fit build of a closure is the one, as long as the newest answer is not a failure.
create function settle_effective(names text[]) returns void language plpgsql as $$
begin
  update module m set effective_build = head.fit
  from (
    select h.name,
      (select b.id from build b where b.module = h.name and b.closure = closure_of(h.head_commit) and b.verdict = 'fit' order by b.try_number limit 1) as fit,
      (select b.verdict from build b where b.module = h.name and b.closure = closure_of(h.head_commit) and b.verdict is not null order by b.try_number desc limit 1) as newest
    from module h where h.name = any (names)
  ) head
  where m.name = head.name and head.newest = 'fit' and m.effective_build is distinct from head.fit;
end $$;

-- Bumping ------------------------------------------------------------------------------------------------------

-- Rows are locked in the order of their names, so that two batches cannot wait for one another.
create function bump_modules(names text[]) returns void language plpgsql as $$
begin
  if cardinality(names) > 0 then
    update module m set facts_version = m.facts_version + 1, changed_at = case when m.facts_version = m.compared_version then now() else m.changed_at end
    from (select name from module where name = any (names) order by name for no key update) locked
    where m.name = locked.name;
  end if;
end $$;

create function bump_nodes(names text[]) returns void language plpgsql as $$
begin
  if cardinality(names) > 0 then
    update node n set version = n.version + 1
    from (select name from node where name = any (names) order by name for no key update) locked
    where n.name = locked.name;
  end if;
end $$;

create function bump_modules_from_new() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(select distinct module from new_rows));
  return null;
end $$;

create function bump_modules_from_old() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(select distinct module from old_rows));
  return null;
end $$;

create trigger request_inserted after insert on request referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger inspection_inserted after insert on inspection referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger build_inserted after insert on build referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger placement_inserted after insert on placement referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger placement_deleted after delete on placement referencing old table as old_rows for each statement execute function bump_modules_from_old();

create function bump_modules_from_builds() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct n.module from new_rows n join old_rows o using (id)
    where (n.verdict, n.reason, n.inputs) is distinct from (o.verdict, o.reason, o.inputs)));
  return null;
end $$;
create trigger build_updated after update on build referencing new table as new_rows old table as old_rows for each statement execute function bump_modules_from_builds();

-- A beat of a request is no change; its state, step and trouble are.
create function bump_modules_from_requests() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct n.module from new_rows n join old_rows o using (id)
    where (n.state, n.attempt, n.taken_by, n.step, n.trouble_reason, n.retry_at, n.lost_attempts, n.stop_reason)
      is distinct from (o.state, o.attempt, o.taken_by, o.step, o.trouble_reason, o.retry_at, o.lost_attempts, o.stop_reason)));
  return null;
end $$;
create trigger request_updated after update on request referencing new table as new_rows old table as old_rows for each statement execute function bump_modules_from_requests();

create function bump_module_itself() returns trigger language plpgsql as $$
begin
  new.facts_version := greatest(new.facts_version, old.facts_version + 1);
  if old.facts_version = old.compared_version then new.changed_at := now(); end if;
  return new;
end $$;
create trigger module_updated before update on module for each row
  when ((new.repository, new.ref, new.head_commit, new.trouble_kind, new.trouble_reason, new.held_at, new.held_why, new.held_build, new.approved_build, new.again_at, new.effective_build)
    is distinct from (old.repository, old.ref, old.head_commit, old.trouble_kind, old.trouble_reason, old.held_at, old.held_why, old.held_build, old.approved_build, old.again_at, old.effective_build))
  execute function bump_module_itself();

-- The mesh's default of declaring is a fact of every module.
create function bump_all_modules() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(select name from module));
  return null;
end $$;
create trigger setting_changed after insert or update on setting for each row when (new.key = 'declareDefault') execute function bump_all_modules();

-- Applied is what was declared, worked out, sent and read back as held; owed is everything declared that is not.
create function settle_placement() returns trigger language plpgsql as $$
begin
  new.is_applied := coalesce(new.want_build = new.build_id and new.applied_digest = new.want_digest and new.failing_resources is null, false);
  if new.is_applied or new.build_id is null then
    new.outstanding_since := null;
  else
    new.outstanding_since := coalesce(new.outstanding_since, new.failing_since, now());
  end if;
  return new;
end $$;
create trigger placement_settled before insert or update on placement for each row execute function settle_placement();

create function bump_from_placements() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct n.module from new_rows n join old_rows o using (module, node)
    where (n.build_id, n.want_build, n.want_digest, n.want_sequence, n.applied_build, n.applied_digest, n.is_applied, n.outstanding_since, n.failing_resources, least(n.failing_count, 3), n.failing_since, n.failing_message)
      is distinct from (o.build_id, o.want_build, o.want_digest, o.want_sequence, o.applied_build, o.applied_digest, o.is_applied, o.outstanding_since, o.failing_resources, least(o.failing_count, 3), o.failing_since, o.failing_message)));
  perform bump_nodes(array(select distinct n.node from new_rows n join old_rows o using (module, node) where n.build_id is distinct from o.build_id));
  return null;
end $$;
create trigger placement_updated after update on placement referencing new table as new_rows old table as old_rows for each statement execute function bump_from_placements();

-- What a node's declaration is derived from: its placements and its own facts.
create function bump_nodes_from_new() returns trigger language plpgsql as $$
begin
  perform bump_nodes(array(select distinct node from new_rows where build_id is not null));
  return null;
end $$;
create function bump_nodes_from_old() returns trigger language plpgsql as $$
begin
  perform bump_nodes(array(select distinct node from old_rows where build_id is not null));
  return null;
end $$;
create trigger placement_to_node_inserted after insert on placement referencing new table as new_rows for each statement execute function bump_nodes_from_new();
create trigger placement_to_node_deleted after delete on placement referencing old table as old_rows for each statement execute function bump_nodes_from_old();

create function bump_node_itself() returns trigger language plpgsql as $$
begin
  new.version := greatest(new.version, old.version + 1);
  return new;
end $$;
create trigger node_updated before update on node for each row
  when ((new.facts, new.site, new.reads) is distinct from (old.facts, old.site, old.reads)) execute function bump_node_itself();

-- What a node was told, and what it says of that, is a fact of the modules that wait for it.
create function bump_modules_from_nodes() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct p.module from new_rows n join old_rows o using (name) join placement p on p.node = n.name
    where p.build_id is not null and not p.is_applied
      and (n.not_worked_out, n.send_trouble, n.sent_sequence, n.received_sequence, n.refused_reason)
        is distinct from (o.not_worked_out, o.send_trouble, o.sent_sequence, o.received_sequence, o.refused_reason)));
  return null;
end $$;
create trigger node_told after update on node referencing new table as new_rows old table as old_rows for each statement execute function bump_modules_from_nodes();

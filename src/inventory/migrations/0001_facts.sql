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
  platform text not null,
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
  stop_reason text                        -- an operator or a newer commit wants a running build to stop
);
create index request_open on request (module) where state in ('requested', 'published', 'taken');
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
  asked_by text,
  asked_why text
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
  host_version text,
  reads jsonb,
  last_beat_at timestamptz,
  last_number bigint not null default 0,  -- newest report number of this epoch
  received_sequence bigint not null default 0,
  applied_sequence bigint not null default 0,
  received_digest text,
  applied_digest text,
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
  not_worked_out text,
  not_worked_out_since timestamptz
);
create index node_to_send on node (name) where version <> derived_version or send_again or derived_digest is distinct from sent_digest;

create table placement (
  module text not null references module (name) on delete cascade,
  node text not null references node (name) on delete cascade,
  assigned_at timestamptz not null default now(),
  assigned_by text,
  generation bigint not null default 1,   -- bumped by every change of the assignment
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
  outstanding_since timestamptz,
  failing_resources text[],
  failing_count int not null default 0,
  failing_since timestamptz,
  failing_message text,
  primary key (module, node)
);
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
  at timestamptz not null default now()
);
create index intent_module on intent (module, at);

create table dead_letter (
  id bigint generated always as identity primary key,
  queue text not null,
  reason text not null,
  body text not null,
  at timestamptz not null default now()
);

-- Bumping ------------------------------------------------------------------------------------------------------

create function bump_modules_from_new() returns trigger language plpgsql as $$
begin
  update module set facts_version = facts_version + 1 where name in (select distinct module from new_rows);
  return null;
end $$;

create function bump_modules_from_old() returns trigger language plpgsql as $$
begin
  update module set facts_version = facts_version + 1 where name in (select distinct module from old_rows);
  return null;
end $$;

create trigger request_inserted after insert on request referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger inspection_inserted after insert on inspection referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger build_inserted after insert on build referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger build_updated after update on build referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger placement_inserted after insert on placement referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger placement_updated after update on placement referencing new table as new_rows for each statement execute function bump_modules_from_new();
create trigger placement_deleted after delete on placement referencing old table as old_rows for each statement execute function bump_modules_from_old();

-- A beat of a request is no change; its state, step and trouble are.
create function bump_modules_from_requests() returns trigger language plpgsql as $$
begin
  update module set facts_version = facts_version + 1 where name in (
    select n.module from new_rows n join old_rows o using (id)
    where (n.state, n.attempt, n.taken_by, n.step, n.trouble_reason, n.retry_at, n.lost_attempts, n.stop_reason)
      is distinct from (o.state, o.attempt, o.taken_by, o.step, o.trouble_reason, o.retry_at, o.lost_attempts, o.stop_reason));
  return null;
end $$;
create trigger request_updated after update on request referencing new table as new_rows old table as old_rows for each statement execute function bump_modules_from_requests();

create function bump_module_itself() returns trigger language plpgsql as $$
begin
  if (new.repository, new.ref, new.head_commit, new.trouble_kind, new.trouble_reason, new.held_at, new.held_build, new.approved_build, new.again_at, new.effective_build)
    is distinct from (old.repository, old.ref, old.head_commit, old.trouble_kind, old.trouble_reason, old.held_at, old.held_build, old.approved_build, old.again_at, old.effective_build)
  then new.facts_version := greatest(new.facts_version, old.facts_version + 1);
  end if;
  return new;
end $$;
create trigger module_updated before update on module for each row execute function bump_module_itself();

-- What a node's declaration is derived from: its placements and its own facts.
create function bump_nodes_from_placements() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    update node set version = version + 1 where name in (select distinct node from old_rows);
  elsif tg_op = 'INSERT' then
    update node set version = version + 1 where name in (select distinct node from new_rows);
  else
    update node set version = version + 1 where name in (
      select n.node from new_rows n join old_rows o using (module, node) where n.build_id is distinct from o.build_id);
  end if;
  return null;
end $$;
create trigger placement_to_node_inserted after insert on placement referencing new table as new_rows for each statement execute function bump_nodes_from_placements();
create trigger placement_to_node_updated after update on placement referencing new table as new_rows old table as old_rows for each statement execute function bump_nodes_from_placements();
create trigger placement_to_node_deleted after delete on placement referencing old table as old_rows for each statement execute function bump_nodes_from_placements();

create function bump_node_itself() returns trigger language plpgsql as $$
begin
  if (new.facts, new.site, new.reads) is distinct from (old.facts, old.site, old.reads) then new.version := greatest(new.version, old.version + 1); end if;
  return new;
end $$;
create trigger node_updated before update on node for each row execute function bump_node_itself();

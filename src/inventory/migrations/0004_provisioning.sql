-- Claims, requirements and what providers make. Everything here is kept by the same writes that place and declare, under
-- one lock, so that two of them cannot both take a singular thing.

-- What a placement's resources show that it takes on its node, as src/domain/claims.ts has it: paths, services, ports.
-- Why the effective build is not declared here: a person is needed, or something is made first. It is in force as long as
-- it is about the build that would be declared; emptying blocked_build asks for another look and keeps the since.
alter table placement
  add column shows text[] not null default '{}',
  add column blocked_build text,
  add column blocked_reason text,
  add column blocked_since timestamptz,
  add column blocked_needs_person boolean not null default false;
create index placement_blocked on placement (module) where blocked_build is not null;

create table claim (
  module text not null,
  node text not null,
  resource text not null,
  scope text not null check (scope in ('node', 'site', 'mesh')),
  primary key (module, node, resource),
  foreign key (module, node) references placement (module, node) on delete cascade
);
create index claim_resource on claim (resource);
create index claim_node on claim (node);

-- What a placement offers others.
create table offer (
  module text not null,
  node text not null,
  kind text not null check (kind in ('presence', 'instantiation')),
  name text not null,
  scope text not null check (scope in ('node', 'site', 'mesh')),
  primary key (module, node, kind, name),
  foreign key (module, node) references placement (module, node) on delete cascade
);
create index offer_name on offer (kind, name);

-- Which of several providers an operator chose for a requirement of a placement; it stays in force when others appear.
create table choice (
  module text not null,
  node text not null,
  requirement text not null,              -- the binding's name, or the presence's
  provider text not null references module (name) on delete cascade,
  provider_node text references node (name) on delete cascade, -- null: wherever it is alone
  chosen_by text not null,
  chosen_at timestamptz not null default now(),
  primary key (module, node, requirement),
  foreign key (module, node) references placement (module, node) on delete cascade
);

-- One thing that a provider makes for a consumer: a database, a route.
create table instance (
  id text primary key,
  name text not null unique,              -- stable: providers name databases by it
  provider text not null,
  provider_node text not null,
  wants text not null,                    -- the instantiation that the provider provides
  consumer text not null references module (name) on delete cascade,
  consumer_node text,                     -- where each node has one of its own
  binding text not null,
  parameters jsonb not null default '{}', -- as the consumer gives them, references filled in
  created_at timestamptz not null default now(),
  secret_version int not null default 1,
  version bigint not null default 1,      -- of all that the provider makes it from
  included_version bigint not null default 0, -- newest that a declaration of the provider's node was derived with
  included_secret_version int not null default 0,
  made_version bigint not null default 0, -- newest that the provider's node applied
  made_secret_version int not null default 0,
  made_at timestamptz,
  foreign key (provider, provider_node) references placement (module, node) on delete cascade
);
create index instance_provider on instance (provider, provider_node);
create index instance_provider_node on instance (provider_node);
create unique index instance_once on instance (provider, provider_node, consumer, binding, coalesce(consumer_node, ''));

-- How the requirements of a placement are satisfied.
create table binding (
  module text not null,
  node text not null,
  kind text not null check (kind in ('presence', 'instantiation')),
  name text not null,
  wants text not null,
  provider text not null,
  provider_node text not null,
  instance_id text references instance (id) on delete cascade,
  primary key (module, node, kind, name),
  foreign key (module, node) references placement (module, node) on delete cascade,
  foreign key (provider, provider_node) references placement (module, node) on delete cascade
);
create index binding_provider on binding (provider, provider_node);
create index binding_instance on binding (instance_id);

-- Whatever was refused is looked at again: something that may have stood in its way has moved.
create function look_at_blocked_again() returns void language sql as $$
  update placement p set blocked_build = null
  from (select module, node from placement where blocked_build is not null order by node, module for no key update) blocked
  where (p.module, p.node) = (blocked.module, blocked.node)
$$;

create function bump_modules_from_blocked() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct n.module from new_rows n join old_rows o using (module, node)
    where (n.blocked_build, n.blocked_reason, n.blocked_needs_person) is distinct from (o.blocked_build, o.blocked_reason, o.blocked_needs_person)));
  return null;
end $$;
create trigger placement_blocked after update on placement referencing new table as new_rows old table as old_rows for each statement execute function bump_modules_from_blocked();

create function look_again_after_new() returns trigger language plpgsql as $$
begin
  if exists (select from new_rows) then perform look_at_blocked_again(); end if;
  return null;
end $$;
create function look_again_after_old() returns trigger language plpgsql as $$
begin
  if exists (select from old_rows) then perform look_at_blocked_again(); end if;
  return null;
end $$;
create trigger placement_deleted_unblocks after delete on placement referencing old table as old_rows for each statement execute function look_again_after_old();
create trigger claim_deleted_unblocks after delete on claim referencing old table as old_rows for each statement execute function look_again_after_old();
create trigger offer_inserted_unblocks after insert on offer referencing new table as new_rows for each statement execute function look_again_after_new();
create trigger choice_inserted_unblocks after insert on choice referencing new table as new_rows for each statement execute function look_again_after_new();
create trigger choice_updated_unblocks after update on choice referencing new table as new_rows for each statement execute function look_again_after_new();

-- What instances are made from, and what their holders are given, names the other's node.
create function bump_counterparts() returns trigger language plpgsql as $$
declare moved text[] := array(
  select n.name from new_rows n join old_rows o using (name) where (n.facts, n.site) is distinct from (o.facts, o.site));
begin
  if cardinality(moved) > 0 then
    perform bump_nodes(array(
      select provider_node from binding where node = any (moved) union select node from binding where provider_node = any (moved)));
    perform look_at_blocked_again();
  end if;
  return null;
end $$;
create trigger node_moved after update on node referencing new table as new_rows old table as old_rows for each statement execute function bump_counterparts();

-- The node of the provider is told what to make; the nodes of the holders, what was made.
create function bump_from_instances() returns trigger language plpgsql as $$
begin
  perform bump_nodes(array(
    select distinct n.provider_node from new_rows n join old_rows o using (id) where n.version <> o.version
    union
    select b.node from new_rows n join old_rows o using (id) join binding b on b.instance_id = n.id
    where (n.parameters, n.made_secret_version) is distinct from (o.parameters, o.made_secret_version)));
  update placement p set blocked_build = null
  from (select w.module, w.node from new_rows n join old_rows o using (id) join placement w on w.module = n.consumer
        where n.made_version <> o.made_version and w.blocked_build is not null order by w.node, w.module for no key update of w) waiting
  where (p.module, p.node) = (waiting.module, waiting.node);
  return null;
end $$;
create trigger instance_updated after update on instance referencing new table as new_rows old table as old_rows for each statement execute function bump_from_instances();

create function bump_from_new_instances() returns trigger language plpgsql as $$
begin
  perform bump_nodes(array(select distinct provider_node from new_rows));
  return null;
end $$;
create trigger instance_inserted after insert on instance referencing new table as new_rows for each statement execute function bump_from_new_instances();
create function bump_from_old_instances() returns trigger language plpgsql as $$
begin
  perform bump_nodes(array(select distinct provider_node from old_rows));
  return null;
end $$;
create trigger instance_deleted after delete on instance referencing old table as old_rows for each statement execute function bump_from_old_instances();

-- An instance that nobody holds any more is taken away.
create function drop_unheld_instances() returns trigger language plpgsql as $$
begin
  delete from instance i using (select distinct instance_id from old_rows where instance_id is not null) o
  where i.id = o.instance_id and not exists (select from binding b where b.instance_id = i.id);
  if exists (select from old_rows) then
    perform bump_nodes(array(select node from old_rows union select provider_node from old_rows));
    perform look_at_blocked_again();
  end if;
  return null;
end $$;
create trigger binding_deleted after delete on binding referencing old table as old_rows for each statement execute function drop_unheld_instances();

create function bump_from_new_bindings() returns trigger language plpgsql as $$
begin
  perform bump_nodes(array(select node from new_rows union select provider_node from new_rows));
  return null;
end $$;
create trigger binding_inserted after insert on binding referencing new table as new_rows for each statement execute function bump_from_new_bindings();

-- Made is what a declaration of the provider's node was derived with and its module there has applied since.
create function settle_made(nodes text[]) returns void language sql as $$
  update instance i set made_version = i.included_version, made_secret_version = i.included_secret_version, made_at = coalesce(i.made_at, now())
  from placement p
  where i.provider_node = any (nodes) and p.module = i.provider and p.node = i.provider_node and p.is_applied and i.made_version <> i.included_version
$$;

create function settle_made_from_placements() returns trigger language plpgsql as $$
declare applied text[] := array(
  select distinct n.node from new_rows n join old_rows o using (module, node) where n.is_applied and not o.is_applied);
begin
  if cardinality(applied) > 0 then perform settle_made(applied); end if;
  if exists (select from new_rows n join old_rows o using (module, node) where not n.shows @> o.shows) then perform look_at_blocked_again(); end if;
  -- What a provider gives stands in its manifest at the build that is declared.
  perform bump_nodes(array(
    select distinct b.node from new_rows n join old_rows o using (module, node) join binding b on b.provider = n.module and b.provider_node = n.node
    where n.build_id is distinct from o.build_id));
  return null;
end $$;
create trigger placement_applied after update on placement referencing new table as new_rows old table as old_rows for each statement execute function settle_made_from_placements();

-- What providers and holders of an instance share and nobody else may know. The store has it sealed with the mesh key, and
-- sealed to each node that needs it: once for a version and a key of the node, so that deriving twice gives one digest.

create table credential (
  owner text not null references instance (id) on delete cascade,
  name text not null,
  version int not null,
  sealed text not null,                   -- with the mesh key
  made_at timestamptz not null default now(),
  primary key (owner, name, version)
);

-- Of what the last declaration derived for a node names, and nothing else: who holds what.
create table sealed_copy (
  node text not null references node (name) on delete cascade,
  owner text not null,
  name text not null,
  version int not null,
  seal_key text not null,                 -- of the node, when it was sealed
  sealed text not null,                   -- to that key
  primary key (node, owner, name, version),
  foreign key (owner, name, version) references credential (owner, name, version) on delete cascade
);
create index sealed_copy_credential on sealed_copy (owner, name, version);

alter table node
  add column seal_key text,               -- taken from the first beat that shows one, with the same trust as public_key
  add column seal_key_refused text;       -- that a beat showed which was refused

-- Another key needs other copies.
create trigger node_seal_key before update of seal_key on node for each row
  when (new.seal_key is distinct from old.seal_key) execute function bump_node_itself();

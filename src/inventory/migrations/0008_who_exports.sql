-- Who exports a name, and whom an import leads to, where that is not only the heads' to say. The functions by which it is kept follow in 0010 and 0011.

-- What others build on is a module's effective build. As long as that is not of the commit that gives its exports (the head is being
-- built, failed, or took a name that another one has), what it exported stays exported too, and by the artifact that it has there: a head
-- that never became fit takes nothing from anyone.
create table kept_export (
  module text not null references module (name) on delete cascade,
  language text not null,
  name text not null,
  artifact text not null,
  since timestamptz not null,             -- as of the export that it was: a name that comes back was never away
  primary key (module, language, name)
);
create index kept_export_name on kept_export (language, name);

-- And what only such a head exports, nobody can build on yet: no build is effective, or one of another commit that does not export this.
alter table module_export add column is_awaited boolean not null default false;

-- Whether it was of outside when a build was fit that had it; false: it was of a module. Null: it is new.
alter table module_import add column was_outside boolean;

-- An import that no module exports is of outside, or of a module whose code has not been read yet: which of the two, nobody knows
-- before that. It is open as long as no build of the module was fit without it.
alter table module add column open_import jsonb; -- the first that is open: {name, file, line}

-- Modules that may yet export what is open in another one that was inspected later than `since`: those that never had a valid inspection, and those whose
-- head moved before and is not inspected. One whose source is in trouble is not about to be.
create view unread as
  select name, case when edges_commit is null then '-infinity'::timestamptz else stale_since end as since from module
  where trouble_kind is null and (head_commit is null or stale_since is not null and edges_commit is distinct from head_commit);
create index module_unread on module ((case when edges_commit is null then '-infinity'::timestamptz else stale_since end), name)
  where trouble_kind is null and (head_commit is null or stale_since is not null and edges_commit is distinct from head_commit);
-- Without beats: an index on those would have each of them write all indexes of the table.
create index request_reading on request ((greatest(requested_at, published_at, taken_at)))
  where kind = 'inspect' and state in ('requested', 'published', 'taken') and trouble_since is null;

alter table module add column unread text; -- whom its line names as not inspected yet
create index module_names_unread on module (unread) where unread is not null;

-- What is owed a comparison is taken in the order of how long it is owed.
drop index module_changed;
create index module_changed on module (changed_at, name) where facts_version <> compared_version;

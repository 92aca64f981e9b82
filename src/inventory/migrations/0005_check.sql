-- One more try that is built twice, to see whether the same comes out; goes with again_at.
alter table module add column again_check boolean not null default false;

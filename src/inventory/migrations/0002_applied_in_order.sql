-- What a node held of an earlier declaration is no word about a later one, though the two have the same digest: where
-- something else was sent in between (there and back again), only a report about this sequence or a later one counts.

update placement set applied_sequence = want_sequence where is_applied and coalesce(applied_sequence, 0) < want_sequence;

create or replace function settle_placement() returns trigger language plpgsql as $$
begin
  new.is_applied := coalesce(
    new.want_build = new.build_id and new.applied_digest = new.want_digest and new.applied_sequence >= new.want_sequence and new.failing_resources is null, false);
  if new.is_applied or new.build_id is null then
    new.outstanding_since := null;
  else
    new.outstanding_since := coalesce(new.outstanding_since, new.failing_since, now());
  end if;
  return new;
end $$;

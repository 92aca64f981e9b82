-- What a node was told and received is a fact only of the modules that it is news to: a node that holds a hundred modules
-- and is sent to again because of one of them changes nothing for the other ninety-nine.
create or replace function bump_modules_from_nodes() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct p.module from new_rows n join old_rows o using (name) join placement p on p.node = n.name
    where p.build_id is not null and not p.is_applied
      and ((n.not_worked_out, n.send_trouble, n.refused_reason) is distinct from (o.not_worked_out, o.send_trouble, o.refused_reason)
        or (coalesce(n.sent_sequence, 0) >= coalesce(p.want_sequence, 1)) is distinct from (coalesce(o.sent_sequence, 0) >= coalesce(p.want_sequence, 1))
        or (n.received_sequence >= p.want_sequence) is distinct from (o.received_sequence >= p.want_sequence))));
  return null;
end $$;

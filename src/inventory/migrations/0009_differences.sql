-- A trigger's statements are planned once a session, for as many rows as it saw first: a join of the new rows with the old ones is then walked
-- row by row when a thousand move at once. What changed is their difference.
create or replace function bump_modules_from_requests() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct module from (
      select id, module, state, attempt, taken_by, step, trouble_reason, retry_at, lost_attempts, stop_reason from new_rows
      except
      select id, module, state, attempt, taken_by, step, trouble_reason, retry_at, lost_attempts, stop_reason from old_rows) changed));
  return null;
end $$;

create or replace function bump_from_placements() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct module from (
      select module, node, build_id, want_build, want_digest, want_sequence, applied_build, applied_digest, is_applied, outstanding_since, failing_resources, least(failing_count, 3), failing_since, failing_message from new_rows
      except
      select module, node, build_id, want_build, want_digest, want_sequence, applied_build, applied_digest, is_applied, outstanding_since, failing_resources, least(failing_count, 3), failing_since, failing_message from old_rows) changed));
  perform bump_nodes(array(
    select distinct node from (select module, node, build_id from new_rows except select module, node, build_id from old_rows) changed));
  return null;
end $$;

-- As in 0007: only the modules that it is news to. What was sent and received is compared per placement, before and after, and both
-- sides have to be there.
create or replace function bump_modules_from_nodes() returns trigger language plpgsql as $$
declare
  moved text[] := array(
    select name from (
      select name, not_worked_out, send_trouble, refused_reason, sent_sequence, received_sequence from new_rows
      except
      select name, not_worked_out, send_trouble, refused_reason, sent_sequence, received_sequence from old_rows) changed);
  told text[];
begin
  if cardinality(moved) = 0 then return null; end if;
  perform set_config('enable_nestloop', 'off', true);
  told := array(
    select distinct p.module from placement p join new_rows n on n.name = p.node join old_rows o on o.name = p.node
    where p.node = any (moved) and p.build_id is not null and not p.is_applied
      and ((n.not_worked_out, n.send_trouble, n.refused_reason) is distinct from (o.not_worked_out, o.send_trouble, o.refused_reason)
        or (coalesce(n.sent_sequence, 0) >= coalesce(p.want_sequence, 1)) is distinct from (coalesce(o.sent_sequence, 0) >= coalesce(p.want_sequence, 1))
        or (n.received_sequence >= p.want_sequence) is distinct from (o.received_sequence >= p.want_sequence)));
  perform set_config('enable_nestloop', 'on', true);
  perform bump_modules(told);
  return null;
end $$;

create or replace function bump_modules_from_blocked() returns trigger language plpgsql as $$
begin
  perform bump_modules(array(
    select distinct module from (
      select module, node, blocked_build, blocked_reason, blocked_needs_person from new_rows
      except
      select module, node, blocked_build, blocked_reason, blocked_needs_person from old_rows) changed));
  return null;
end $$;

create or replace function bump_counterparts() returns trigger language plpgsql as $$
declare moved text[] := array(
  select name from (select name, facts, site from new_rows except select name, facts, site from old_rows) changed);
begin
  if cardinality(moved) > 0 then
    perform bump_nodes(array(
      select provider_node from binding where node = any (moved) union select node from binding where provider_node = any (moved)));
    perform look_at_blocked_again();
  end if;
  return null;
end $$;

create or replace function bump_from_instances() returns trigger language plpgsql as $$
begin
  perform bump_nodes(array(
    select provider_node from (select id, provider_node, version from new_rows except select id, provider_node, version from old_rows) changed
    union
    select b.node from (select id, parameters, made_secret_version from new_rows except select id, parameters, made_secret_version from old_rows) changed
    join binding b on b.instance_id = changed.id));
  update placement p set blocked_build = null
  from (select w.module, w.node from (select id, consumer, made_version from new_rows except select id, consumer, made_version from old_rows) made
        join placement w on w.module = made.consumer
        where w.blocked_build is not null order by w.node, w.module for no key update of w) waiting
  where (p.module, p.node) = (waiting.module, waiting.node);
  return null;
end $$;

create or replace function settle_made_from_placements() returns trigger language plpgsql as $$
declare
  applied text[] := array(
    select distinct node from (select module, node from new_rows where is_applied except select module, node from old_rows where is_applied) changed);
  has_shown_less boolean := exists (
    select module, node, unnest(shows) from old_rows where shows <> '{}' except select module, node, unnest(shows) from new_rows where shows <> '{}');
begin
  if cardinality(applied) > 0 then perform settle_made(applied); end if;
  if has_shown_less then perform look_at_blocked_again(); end if;
  -- What a provider gives stands in its manifest at the build that is declared.
  perform bump_nodes(array(
    select distinct b.node from (select module, node, build_id from new_rows except select module, node, build_id from old_rows) changed
    join binding b on b.provider = changed.module and b.provider_node = changed.node));
  return null;
end $$;

-- Each status says which modules came out otherwise; they are few.
create index build_unlike on build (module, closure) where not_reproducible;

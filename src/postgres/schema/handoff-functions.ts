// The functions of hand-off boxes. To change the next ticket of a group, a function locks its lane
// first, and finds the ticket in a later statement, which sees everything committed before the lock
// was granted. Rows are locked in this order: staged rows, keys, tickets, lanes.
//
// Plans are made while tables are small, and kept. Rows that belong to given ids or keys are therefore
// found by subqueries on the primary key, or one by one: for a join, a plan may read a whole table that
// has grown.

/** SQL that is true if the session is alive. */
const isAlive = "exists (select 1 from hf_holder h where h.p = ground_ and h.id = holder_ and h.dead is null)";

export const handoffFunctions: string = `
-- Finds out anew when the lanes are ready.
create function hf_lanes_1(p_ int, grps text[]) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare grp_ text;
begin
  for grp_ in select g from unnest(grps) u(g) order by g collate "C" loop
    perform 1 from hf_lane l where l.p = p_ and l.grp = grp_ for update;
    update hf_lane l set ready = (
        select case when t.state = 'i' then coalesce(t.due, t.entered) end from hf_ticket t
        where t.p = p_ and t.grp = grp_ and t.place is not null and t.state in ('i', 'p', 'k')
        order by t.place limit 1)
      where l.p = p_ and l.grp = grp_;
  end loop;
end $$;

-- Gives the tickets of groups that have none the next places in their lanes, in this order.
create function hf_enter_1(p_ int, ids text[]) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare grps text[];
begin
  select array_agg(distinct t.grp) into grps from hf_ticket t where t.p = p_ and t.id = any (ids) and t.grp is not null;
  if grps is null then return; end if;
  insert into hf_lane as l (p, grp, last)
    select p_, t.grp, count(*) from hf_ticket t
    where t.p = p_ and t.id = any (ids) and t.grp is not null and t.place is null group by t.grp order by t.grp
    on conflict (p, grp) do update set last = l.last + excluded.last;
  with x as materialized (
      select w.id, (select l.last from hf_lane l where l.p = p_ and l.grp = w.grp)
        - count(*) over (partition by w.grp) + row_number() over (partition by w.grp order by array_position(ids, w.id)) as place
      from hf_ticket w where w.p = p_ and w.id = any (ids) and w.grp is not null and w.place is null)
    update hf_ticket t set place = x.place from x where t.p = p_ and t.id = any (ids) and t.id = x.id;
  perform hf_lanes_1(p_, grps);
end $$;

-- Publishes tickets of many callers of one process. staged: the ticket has pieces in hf_payload.
-- Returns a row for each: 'new' (also if an earlier call made it), 'duplicate' (of ticket), 'lost'.
create function hf_publish_1(
  p_ int, is_synced boolean, ids text[], keys text[], keyed boolean[], grps text[], prios int[],
  delays float8[], expiries float8[], sizes bigint[], manifests text[], inlines bytea[], staged boolean[]
) returns table (i bigint, ticket text, outcome text)
language plpgsql volatile set enable_seqscan = off as $$
declare
  now_ timestamptz := clock_timestamp();
  had text[]; lost text[]; firsts text[]; made text[];
begin
  if not is_synced then perform set_config('synchronous_commit', 'off', true); end if;
  if array_position(staged, true) is not null then
    with gone as (
      delete from hf_staged s using unnest(ids, staged) u(id, is_staged)
      where u.is_staged and s.p = p_ and s.owner = u.id returning s.owner)
    select array_agg(g.owner) into had from gone g;
    select array_agg(u.id) into lost from unnest(ids, staged) u(id, is_staged)
      where u.is_staged and u.id <> all (coalesce(had, '{}'))
        and not exists (select 1 from hf_ticket t where t.p = p_ and t.id = u.id);
  end if;
  -- In the order of the keys: two batches never wait for each other in a circle.
  insert into hf_key (p, key, id)
    select p_, u.key, u.id from unnest(ids, keys, keyed) with ordinality u(id, key, is_keyed, n)
    where u.is_keyed and u.id <> all (coalesce(lost, '{}')) order by u.key, u.n
    on conflict do nothing;
  select array_agg(coalesce(case when u.is_keyed then (select k.id from hf_key k where k.p = p_ and k.key = u.key) end, u.id)
      order by u.n) into firsts
    from unnest(ids, keys, keyed) with ordinality u(id, key, is_keyed, n);
  with fresh as (
    insert into hf_ticket (p, id, state, priority, grp, entered, due, created, not_before, expires, key, keyed, bytes, manifest, inline)
    select p_, u.id, case when u.delay > 0 then 'd' else 'i' end::"char", u.prio, u.grp,
      now_ + u.n * interval '1 microsecond',
      case when u.delay > 0 then now_ + make_interval(secs => u.delay / 1000) end, now_,
      now_ + make_interval(secs => u.delay / 1000), now_ + make_interval(secs => u.expiry / 1000),
      u.key, u.is_keyed, u.size, u.manifest::json, u.inl
    from unnest(ids, keys, keyed, grps, prios, delays, expiries, sizes, manifests, inlines, firsts) with ordinality
      u(id, key, is_keyed, grp, prio, delay, expiry, size, manifest, inl, first, n)
    where u.first = u.id and u.id <> all (coalesce(lost, '{}'))
      and not exists (select 1 from hf_done d where d.p = p_ and d.key = u.key and d.id = u.id)
    on conflict do nothing
    returning hf_ticket.id, hf_ticket.grp, hf_ticket.state)
  select array_agg(u.id order by u.n) into made
    from unnest(ids) with ordinality u(id, n) join fresh f on f.id = u.id where f.grp is not null and f.state = 'i';
  if made is not null then perform hf_enter_1(p_, made); end if;
  -- pieces of tickets that came second
  if had is not null then
    delete from hf_payload y using unnest(ids, firsts) u(id, first)
      where u.first <> u.id and y.p = p_ and y.owner = any (had) and y.owner = u.id;
  end if;
  return query select u.n, u.first,
      case when u.id = any (lost) then 'lost' when u.first <> u.id then 'duplicate' else 'new' end
    from unnest(ids, firsts) with ordinality u(id, first, n) order by u.n;
end $$;

-- Claims up to k tickets for a session, with the serial numbers from serial_. A claim is not synced:
-- one that a crash takes back is claimed again, and its ack is refused.
-- Returns a row for each ticket, or one that says 'paused' or 'dead'. Without sorts, a plan reads queues
-- in the order of their indexes, and stops after the first k.
create function hf_claim_1(
  p_ int, ground_ int, holder_ text, serial_ bigint, k int, lanes_first boolean, in_flight int
) returns table (
  outcome text, id text, serial bigint, priority smallint, keyed boolean, claims int, forgiven int, replays int,
  created_ms float8, not_before_ms float8, expires_ms float8, manifest json, inline bytea, is_done boolean)
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $$
declare n int; now_ timestamptz; lane record; head record; more text[]; taken text[] := '{}'; taken_ text;
begin
  perform set_config('synchronous_commit', 'off', true);
  if exists (select 1 from hf_box b where b.p = p_ and b.paused is not null) then
    outcome := 'paused'; return next; return;
  end if;
  if not ${isAlive} then
    outcome := 'dead'; return next; return;
  end if;
  if in_flight is not null then
    perform 1 from hf_box b where b.p = p_ for update;
    select count(*) into n from (select 1 from hf_ticket t where t.p = p_ and t.state = 'p' limit in_flight) x;
    k := least(k, in_flight - n);
  end if;
  now_ := clock_timestamp();
  for turn in 0 .. 1 loop
    exit when cardinality(taken) >= k;
    if (turn = 0) = lanes_first then
      for lane in
        select l.grp from hf_lane l where l.p = p_ and l.ready <= now_
        order by l.ready limit k - cardinality(taken) for update skip locked
      loop
        select t.id, t.state, t.due into head from hf_ticket t
          where t.p = p_ and t.grp = lane.grp and t.place is not null and t.state in ('i', 'p', 'k')
          order by t.place limit 1;
        if head.state = 'i' and coalesce(head.due, now_) <= now_ then
          update hf_lane l set ready = null where l.p = p_ and l.grp = lane.grp;
          taken := taken || head.id;
        else
          perform hf_lanes_1(p_, array[lane.grp]);
        end if;
      end loop;
    else
      select array_agg(c.id) into more from (
        select t.id from hf_ticket t where t.p = p_ and t.state = 'i' and t.grp is null
        order by t.priority, t.entered, t.id limit k - cardinality(taken) for update skip locked) c;
      taken := taken || coalesce(more, '{}');
    end if;
  end loop;
  outcome := 'claimed';
  serial := serial_;
  foreach taken_ in array taken loop
    update hf_ticket t set state = 'p', due = null, holder = holder_, serial = hf_claim_1.serial, claims = t.claims + 1
      where t.p = p_ and t.id = taken_
      returning t.id, t.priority, t.keyed, t.claims, t.forgiven, t.replays,
        extract(epoch from t.created) * 1000, extract(epoch from t.not_before) * 1000,
        extract(epoch from t.expires) * 1000, t.manifest, t.inline,
        exists (select 1 from hf_done d where d.p = p_ and d.key = t.key and d.replays = t.replays)
      into id, priority, keyed, claims, forgiven, replays, created_ms, not_before_ms, expires_ms, manifest, inline, is_done;
    return next;
    serial := serial + 1;
  end loop;
end $$;

-- Commits results and archives their tickets, in one step. owners: of staged outputs.
-- Returns 'done', also for an earlier call whose answer was lost; 'skipped' if another ticket with
-- this key was done before; 'lost'.
create function hf_ack_1(
  p_ int, ground_ int, holder_ text, is_synced boolean,
  ids text[], serials bigint[], results text[], outputs_ text[], owners text[]
) returns table (i bigint, outcome text)
language plpgsql volatile set enable_seqscan = off as $$
declare
  has_outputs boolean := cardinality(array_remove(owners, null)) > 0;
  swept text[]; grps text[]; done text[]; others bigint;
begin
  if not is_synced then perform set_config('synchronous_commit', 'off', true); end if;
  if has_outputs then
    with had as (select s.owner from hf_staged s where s.p = p_ and s.owner = any (owners) order by s.owner for update)
    select array_agg(u.id) into swept from unnest(ids, owners) u(id, owner)
      where u.owner is not null and not exists (select 1 from had where had.owner = u.owner);
  end if;
  perform 1 from hf_ticket t where t.p = p_ and t.id = any (ids) order by t.id for update;
  with u as (select * from unnest(ids, serials, results, outputs_, owners) u(id, serial, result, outputs, owner)),
  t as (
    update hf_ticket t set state = 'a', settled = clock_timestamp(), progress = null
    from u where t.p = p_ and t.id = any (ids) and t.id = u.id and t.state = 'p' and t.holder = holder_ and t.serial = u.serial
      and u.id <> all (coalesce(swept, '{}')) and ${isAlive}
    returning t.id, t.key, t.replays, t.claims, t.serial, t.grp),
  d as (
    insert into hf_done (p, key, replays, id, claims, holder, serial, result, outputs, owner)
    select p_, t.key, t.replays, t.id, t.claims, holder_, t.serial, u.result::json, coalesce(u.outputs, '[]')::json, u.owner
    from t join u on u.id = t.id order by t.key
    on conflict do nothing returning id)
  select array_agg(distinct t.grp) filter (where t.grp is not null), array_agg(t.id), count(*) - (select count(*) from d)
    into grps, done, others from t;
  if others > 0 then
    -- Another ticket with this key was done before: its result stays.
    update hf_ticket t set duplicate = true where t.p = p_ and t.id = any (done)
      and exists (select 1 from hf_done d where d.p = p_ and d.key = t.key and d.replays = t.replays and d.id <> t.id);
  elsif cardinality(done) = cardinality(ids) and not has_outputs and grps is null then
    return query select n::bigint, 'done' from generate_series(1, cardinality(ids)) n;
    return;
  end if;
  if has_outputs then
    -- Outputs of a lost claim stay staged: their process, or a sweep, removes them.
    delete from hf_staged s using unnest(ids, owners) u(id, owner)
      where u.id = any (done) and s.p = p_ and s.owner = any (owners) and s.owner = u.owner;
    if others > 0 then
      select array_agg(u.owner) into swept from unnest(ids, owners) u(id, owner)
        where u.id = any (done) and (select t.duplicate from hf_ticket t where t.p = p_ and t.id = u.id);
      delete from hf_payload y where y.p = p_ and y.owner = any (swept);
    end if;
  end if;
  if grps is not null then perform hf_lanes_1(p_, grps); end if;
  -- Without the state in the condition: a plan may use the index of the archive, and read all of it.
  return query select u.n, coalesce((
      select case when t.state <> 'a' or t.holder <> holder_ or t.serial <> u.serial then 'lost'
        when t.duplicate then 'skipped' else 'done' end
      from hf_ticket t where t.p = p_ and t.id = u.id), 'lost')
    from unnest(ids, serials) with ordinality u(id, serial, n) order by u.n;
end $$;

-- Ends a claim without a result. how: 'retry', 'back' (the attempt does not count), 'fail', 'park',
-- 'skip' (another ticket with its key was done before). Returns when the ticket is due, in
-- milliseconds; null if the claim was gone.
create function hf_settle_1(
  p_ int, ground_ int, holder_ text, is_synced boolean, id_ text, serial_ bigint,
  how text, delay float8, outcome_ text, reason_ text, kept_ text
) returns float8
language plpgsql volatile set enable_seqscan = off as $$
declare t hf_ticket; now_ timestamptz; due_ timestamptz; is_waiting boolean;
begin
  if not is_synced then perform set_config('synchronous_commit', 'off', true); end if;
  select * into t from hf_ticket x
    where x.p = p_ and x.id = id_ and x.state = 'p' and x.holder = holder_ and x.serial = serial_ for update;
  if not found or not ${isAlive} then return null; end if;
  now_ := clock_timestamp();
  due_ := now_ + make_interval(secs => delay / 1000);
  is_waiting := how in ('retry', 'back') and delay > 0;
  if outcome_ is not null then
    insert into hf_note (p, id, claims, attempt, outcome, reason, holder)
      values (p_, id_, t.claims, t.claims - t.forgiven, outcome_, reason_, holder_) on conflict do nothing;
  end if;
  update hf_ticket x set
      state = case when how = 'fail' then 'e' when how = 'park' then 'k' when how = 'skip' then 'a'
        when is_waiting and t.place is null then 'd' else 'i' end::"char",
      due = case when is_waiting or how = 'park' then due_ end,
      entered = case when how in ('retry', 'back') then now_ else t.entered end,
      settled = case when how in ('fail', 'skip') then now_ end,
      forgiven = t.forgiven + case when how = 'back' then 1 else 0 end,
      duplicate = how = 'skip', progress = null, kept = kept_::json
    where x.p = p_ and x.id = id_;
  if t.grp is not null then perform hf_lanes_1(p_, array[t.grp]); end if;
  return extract(epoch from due_) * 1000;
end $$;

-- Continues a parked claim: the attempt stays the same. Returns false if it is not parked.
create function hf_unpark_1(p_ int, holder_ text, id_ text, claims_ int, serial_ bigint) returns boolean
language plpgsql volatile set enable_seqscan = off as $$
begin
  update hf_ticket t set state = 'p', due = null, holder = holder_, serial = serial_
    where t.p = p_ and t.id = id_ and t.state = 'k' and t.due > clock_timestamp() and t.claims = coalesce(claims_, t.claims);
  return found;
end $$;

-- Returns the tickets of dead holders, and removes what they had staged. Returns their number.
create function hf_reap_1(p_ int, ground_ int) returns int
language plpgsql volatile set enable_seqscan = off as $$
declare holder_ text := ''; total int := 0; made int; grps text[]; owners text[];
begin
  loop
    select t.holder into holder_ from hf_ticket t
      where t.p = p_ and t.state = 'p' and t.holder > holder_ order by t.holder limit 1;
    exit when not found;
    continue when ${isAlive};
    with x as (
      update hf_ticket t set state = 'i', entered = clock_timestamp(), progress = null
      where t.p = p_ and t.state = 'p' and t.holder = holder_ returning t.id, t.claims, t.forgiven, t.grp),
    n as (
      insert into hf_note (p, id, claims, attempt, outcome, reason, holder)
      select p_, x.id, x.claims, x.claims - x.forgiven, 'lost', 'Its worker died, or was silent for its lease.', holder_
      from x on conflict do nothing)
    select count(*), array_agg(distinct x.grp) filter (where x.grp is not null) into made, grps from x;
    total := total + made;
    if grps is not null then perform hf_lanes_1(p_, grps); end if;
  end loop;
  with s as (
    delete from hf_staged s where s.p = p_
      and not exists (select 1 from hf_holder h where h.p = s.ground and h.id = s.holder and h.dead is null)
    returning s.owner)
  select array_agg(s.owner) into owners from s;
  -- In a later statement, which sees the pieces that were added meanwhile.
  delete from hf_payload y where y.p = p_ and y.owner = any (owners);
  return total;
end $$;

-- Lets tickets enter the queue that are due, and parked claims whose time is over. Returns their
-- number, and how long it takes until the next one is due, in milliseconds.
create function hf_due_1(p_ int) returns table (entered int, next_ms float8)
language plpgsql volatile set enable_seqscan = off as $$
declare now_ timestamptz := clock_timestamp(); made text[]; grps text[];
begin
  with c as (
    select t.id, t.state, t.due from hf_ticket t where t.p = p_ and t.state in ('d', 'k') and t.due <= now_
    order by t.due, t.id limit 256 for update skip locked),
  x as (
    update hf_ticket t set state = 'i', due = null, kept = null, entered = greatest(c.due, t.entered) from c where t.p = p_ and t.id = c.id
    returning t.id, c.state, c.due, t.claims, t.forgiven, t.holder),
  n as (
    insert into hf_note (p, id, claims, attempt, outcome, reason, holder)
    select p_, x.id, x.claims, x.claims - x.forgiven, 'lost',
      'It was parked until ' || to_char(x.due at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || ', and no process settled it.',
      coalesce(x.holder, '')
    from x where x.state = 'k' on conflict do nothing)
  select array_agg(x.id order by x.due, x.id) into made from x;
  entered := coalesce(cardinality(made), 0);
  if entered > 0 then perform hf_enter_1(p_, made); end if;
  select extract(epoch from t.due - clock_timestamp()) * 1000 into next_ms from hf_ticket t
    where t.p = p_ and t.state in ('d', 'k') order by t.due limit 1;
  return next;
end $$;

-- Returns claims to the queue that no caller got to know of.
create function hf_return_1(p_ int, holder_ text, serials bigint[]) returns int
language plpgsql volatile set enable_seqscan = off as $$
declare n int; grps text[];
begin
  with x as (
    update hf_ticket t set state = 'i', entered = clock_timestamp(), forgiven = t.forgiven + 1
    where t.p = p_ and t.state = 'p' and t.holder = holder_ and t.serial = any (serials) returning t.grp)
  select count(*), array_agg(distinct x.grp) filter (where x.grp is not null) into n, grps from x;
  if grps is not null then perform hf_lanes_1(p_, grps); end if;
  return n;
end $$;

-- Returns dead letters or archived tickets to the queue, and their number.
create function hf_replay_1(p_ int, from_ "char", ids text[], is_reset boolean) returns int
language plpgsql volatile set enable_seqscan = off as $$
declare made text[];
begin
  perform 1 from hf_ticket t where t.p = p_ and t.id = any (ids) order by t.id for update;
  with x as (
    update hf_ticket t set state = 'i', due = null, place = null, settled = null, duplicate = false,
      entered = clock_timestamp(), forgiven = case when is_reset then t.claims else t.forgiven end,
      replays = t.replays + case when from_ = 'a' then 1 else 0 end
    where t.p = p_ and t.state = from_ and t.id = any (ids) returning t.id)
  select array_agg(u.id order by u.n) into made from unnest(ids) with ordinality u(id, n) join x on x.id = u.id;
  if made is null then return 0; end if;
  perform hf_enter_1(p_, made);
  return cardinality(made);
end $$;

-- Removes tickets that are done or failed, with their files and notes. The ledger keeps its entry,
-- and with it the key.
create function hf_discard_1(p_ int, from_ "char", ids text[]) returns table (tickets bigint, bytes bigint)
language plpgsql volatile set enable_seqscan = off as $$
declare gone text[]; keys text[];
begin
  with x as (delete from hf_ticket t where t.p = p_ and t.state = from_ and t.id = any (ids) returning t.id, t.key, t.keyed, t.bytes)
  select array_agg(x.id), array_agg(x.key) filter (where x.keyed), count(*), coalesce(sum(x.bytes), 0)::bigint
    into gone, keys, tickets, bytes from x;
  delete from hf_note n where n.p = p_ and n.id = any (gone);
  delete from hf_payload y where y.p = p_ and y.owner = any (gone);
  delete from hf_key k where k.p = p_ and k.key = any (keys) and k.id = any (gone)
    and not exists (select 1 from hf_done d where d.p = p_ and d.key = k.key);
  return next;
end $$;

-- Removes up to 256 entries of the ledger that are older, with their outputs, and keys that no
-- waiting ticket needs. Returns their number.
create function hf_expire_1(p_ int, older_ms float8) returns bigint
language plpgsql volatile set enable_seqscan = off as $$
declare gone text[]; owners text[]; n bigint;
begin
  with c as (
    select d.key, d.replays from hf_done d
    where d.p = p_ and d.at < clock_timestamp() - make_interval(secs => older_ms / 1000)
    order by d.at limit 256 for update skip locked),
  x as (delete from hf_done d using c where d.p = p_ and d.key = c.key and d.replays = c.replays returning d.key, d.owner)
  select count(*), array_agg(x.key), array_agg(x.owner) filter (where x.owner is not null) into n, gone, owners from x;
  delete from hf_payload y where y.p = p_ and y.owner = any (owners);
  delete from hf_key k where k.p = p_ and k.key = any (gone)
    and not exists (select 1 from hf_done d where d.p = p_ and d.key = k.key)
    and not exists (select 1 from hf_ticket t where t.p = p_ and t.id = k.id and t.state <> 'a');
  return n;
end $$;
`;

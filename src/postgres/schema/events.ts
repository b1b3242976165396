// Schema version 2: event logs.
//
// Callers' texts are escaped as in JSON (see connection/text.ts), because a text of PostgreSQL cannot
// have a NUL. In keys, a long type, id or tag is replaced by its hash, because a row of an index has
// at most 2,704 bytes.

export const eventsSchema: string = `
-- the head of a log, and the size of its events; whoever appends locks this row until the commit, so commit order is position order
create table hf_log (
  p int primary key,
  head bigint not null default 0,
  lines bigint not null default 0,
  bytes bigint not null default 0,
  retag_mark text not null default '00000000',
  retag_ids text[] not null default '{}') with (fillfactor = 10);

-- what one call has appended: its condition, or the tags that it added
create table hf_line (
  p int not null,
  n bigint not null,
  first bigint not null,
  events int not null,
  at timestamptz(3) not null,
  condition json,
  retag json,
  primary key (p, n));
create index hf_line_at on hf_line (p, at);

-- long: the id and the type, if one of them is replaced by its hash; more: tags that were added
create table hf_event (
  p int not null,
  pos bigint not null,
  id text collate "C" not null,
  type text collate "C" not null,
  tags text[] not null,
  more text[],
  body json not null,
  at timestamptz(3) not null,
  given boolean not null default false,
  long json,
  primary key (p, pos),
  unique (p, id));
create index hf_event_type on hf_event (p, type, pos);

create table hf_tag (
  p int not null,
  tag text collate "C" not null,
  pos bigint not null,
  type text collate "C" not null,
  primary key (p, tag, pos) include (type));

-- what can be derived from a log again
create table hf_document (
  p int not null,
  generation text collate "C" not null,
  hash text collate "C" not null,
  fence bigint not null,
  position bigint not null,
  document json not null,
  primary key (p, generation, hash));
create table hf_snapshot (
  p int not null,
  model text collate "C" not null,
  hash text collate "C" not null,
  record text not null,
  primary key (p, model, hash));

-- Judges and inserts the appends of many callers of one process, in their order, in one transaction.
--   ev_*      the events of all calls. ev_check: the id may be stored already. ev_at: null is now.
--             ev_long, ev_keys: null, or what column long and the keys of the tags are
--   co_*      the items of their conditions, each with its rarest tag first
--   dep_*     event dep_event of this batch matches the condition of call dep_call
--   line_condition  the condition of each call as exports have it
-- Returns a row for each call: 'ok' (a = first, b = last), 'refused' (a = judged up to here), 'known'.
create function hf_append_1(
  p_ int, n_calls int, lock_ms int, is_synced boolean,
  ev_call int[], ev_id text[], ev_type text[], ev_tags text[], ev_body text[],
  ev_given boolean[], ev_check boolean[], ev_at timestamptz[], ev_long text[], ev_keys text[],
  co_call int[], co_after bigint[], co_types text[], co_tags text[],
  dep_call int[], dep_event int[], line_condition text[]
) returns table (call int, outcome text, a bigint, b bigint)
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  head_ bigint; lines_ bigint; pos_ bigint; now_ timestamptz(3); made bigint;
  outcomes text[] := array_fill('ok'::text, array[n_calls]);
  firsts bigint[] := array_fill(0::bigint, array[n_calls]);
  counts int[] := array_fill(0, array[n_calls]);
  afters bigint[] := array_fill(0::bigint, array[n_calls]);
  ev_pos bigint[] := array_fill(null::bigint, array[cardinality(ev_call)]);
  i int; d int := 1; e int := 1;
begin
  perform set_config('lock_timeout', lock_ms::text, true);
  if not is_synced then perform set_config('synchronous_commit', 'off', true); end if;

  -- 1. Lock the head. Nothing is judged in this statement: it sees what was committed when it began to wait.
  select l.head, l.lines into strict head_, lines_ from hf_log l where l.p = p_ for update;

  -- 2. Later statements see all that was committed before the lock was granted.
  if array_position(ev_check, true) is not null then
    for i in
      select distinct u.call from unnest(ev_call, ev_id, ev_check) u(call, id, is_checked)
      where u.is_checked and exists (select 1 from hf_event x where x.p = p_ and x.id = u.id)
    loop outcomes[i] := 'known'; end loop;
  end if;
  for i in
    select distinct c.call from unnest(co_call, co_after, co_types, co_tags) c(call, after, types, tags)
    where case
      when c.after >= head_ then false
      when c.tags = '{}' and c.types = '{}' then true
      when c.tags = '{}' then exists (
        select 1 from unnest(c.types::text[]) w(type), lateral (
          select 1 from hf_event x where x.p = p_ and x.type = w.type and x.pos > c.after limit 1) y)
      else exists (
        select 1 from hf_tag t where t.p = p_ and t.tag = (c.tags::text[])[1] and t.pos > c.after
          and (c.types = '{}' or t.type = any (c.types::text[]))
          and not exists (select 1 from unnest((c.tags::text[])[2:]) w(tag)
            where not exists (select 1 from hf_tag o where o.p = p_ and o.tag = w.tag and o.pos = t.pos)))
      end
  loop
    if outcomes[i] = 'ok' then outcomes[i] := 'refused'; end if;
  end loop;

  -- 3. Call by call: positions, and conditions that an accepted call of this batch violates.
  foreach i in array ev_call loop counts[i] := counts[i] + 1; end loop;
  for i in 1 .. cardinality(co_call) loop afters[co_call[i]] := co_after[i]; end loop;
  pos_ := head_;
  for i in 1 .. n_calls loop
    while d <= cardinality(dep_call) and dep_call[d] = i loop
      if outcomes[i] = 'ok' and ev_pos[dep_event[d]] > afters[i] then outcomes[i] := 'refused'; end if;
      d := d + 1;
    end loop;
    firsts[i] := pos_ + 1;
    if outcomes[i] = 'ok' then
      for j in 0 .. counts[i] - 1 loop pos_ := pos_ + 1; ev_pos[e + j] := pos_; end loop;
    end if;
    e := e + counts[i];
  end loop;

  -- 4. All events at once.
  if pos_ > head_ then
    now_ := clock_timestamp();
    insert into hf_event (p, pos, id, type, tags, body, at, given, long)
      select p_, u.pos, u.id, u.type, u.tags::text[], u.body::json, coalesce(u.at, now_), u.given, u.long::json
      from unnest(ev_pos, ev_id, ev_type, ev_tags, ev_body, ev_at, ev_given, ev_long)
        u(pos, id, type, tags, body, at, given, long)
      where u.pos is not null;
    insert into hf_tag (p, tag, pos, type)
      select p_, t.tag, u.pos, u.type
      from unnest(ev_pos, ev_type, ev_tags, ev_keys) u(pos, type, tags, keys), unnest(coalesce(u.keys, u.tags)::text[]) t(tag)
      where u.pos is not null;
    insert into hf_line (p, n, first, events, at, condition)
      select p_, lines_ + row_number() over (order by u.i), u.first, u.events, coalesce(
          (select x.at from unnest(ev_call, ev_at) x(call, at) where x.call = u.i limit 1), now_), u.condition::json
      from unnest(firsts, counts, outcomes, line_condition) with ordinality u(first, events, outcome, condition, i)
      where u.outcome = 'ok';
    get diagnostics made = row_count;
    update hf_log l set head = pos_, lines = lines_ + made, bytes = l.bytes + (
        select sum(octet_length(u.id) + octet_length(u.type) + octet_length(u.tags) + octet_length(u.body))
        from unnest(ev_pos, ev_id, ev_type, ev_tags, ev_body) u(pos, id, type, tags, body) where u.pos is not null)
      where l.p = p_;
  end if;

  for i in 1 .. n_calls loop
    call := i; outcome := outcomes[i];
    a := case when outcome = 'ok' then firsts[i] else firsts[i] - 1 end;
    b := firsts[i] + counts[i] - 1;
    return next;
  end loop;
end $$;

-- Adds tags to events. id_: a repeated call adds nothing.
create function hf_retag_1(
  p_ int, id_ text, lock_ms int, positions bigint[], tags_ text[], keys_ text[], retag_ text, at_ timestamptz
) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare line bigint; head_ bigint;
begin
  perform set_config('lock_timeout', lock_ms::text, true);
  perform 1 from hf_log l where l.p = p_ for update;
  if exists (select 1 from hf_log l where l.p = p_ and id_ = any (l.retag_ids)) then return; end if;
  update hf_log l set lines = lines + 1, retag_ids = (id_ || l.retag_ids)[1:64],
      retag_mark = left(md5(l.retag_mark || retag_), 8)
    where l.p = p_ returning l.lines, l.head into line, head_;
  insert into hf_line (p, n, first, events, at, retag)
    values (p_, line, head_ + 1, 0, coalesce(at_, clock_timestamp()), retag_::json);
  update hf_event e set more = coalesce(e.more, '{}') || array(
      select w.tag from unnest(tags_) with ordinality w(tag, i)
      where w.tag <> all (e.tags) and w.tag <> all (coalesce(e.more, '{}')) order by w.i)
    where e.p = p_ and e.pos = any (positions);
  insert into hf_tag (p, tag, pos, type)
    select p_, w.tag, e.pos, e.type from hf_event e, unnest(keys_) w(tag) where e.p = p_ and e.pos = any (positions)
    on conflict do nothing;
end $$;
`;

// Schema version 4: object stores.
//
// Keys are `bytea`: they sort as UTF-8, and may have a NUL. `entry` is the entry of a key as in a
// folder (objects/model/entry.ts), including later changes of its attributes.

export const objectsSchema: string = `
-- what a process has committed last: a transaction whose answer was lost is found out by its number
create table hf_turn (
  id text collate "C" primary key,
  n bigint not null,
  at timestamptz not null default clock_timestamp()) with (fillfactor = 50);

create table hf_bucket (
  b int generated always as identity primary key,
  p int not null,
  name text collate "C" not null,
  id text collate "C" not null,
  made_at timestamptz(3) not null default clock_timestamp(),
  n bigint not null default 1,
  settings json not null,
  unique (p, name));

-- the keys that have a version; whoever changes one locks its row. live: the current version is no
-- delete marker. null_slot: the slot of the null version
create table hf_object (
  b int not null,
  key bytea not null,
  slot bigint not null,
  null_slot bigint,
  live boolean not null,
  primary key (b, key)) with (fillfactor = 80);
create index hf_object_live on hf_object (b, key) where live;

-- body: a small one. parts: the files of objects/model/entry.ts, whose names are those of blobs
create table hf_version (
  b int not null,
  key bytea not null,
  slot bigint not null,
  marker boolean not null,
  bytes bigint not null,
  entry json not null,
  body bytea,
  parts json,
  blobs text[] collate "C",
  upload text collate "C");
create unique index hf_version_key on hf_version (b, key, slot desc);
alter table hf_version alter body set storage external;

-- gone_after: null while a version or an upload names the blob. It is set while the blob is written,
-- and again when nothing names it any more, for readers that have it open
create table hf_blob (
  blob text collate "C" primary key,
  p int not null,
  gone_after timestamptz);
create index hf_blob_gone on hf_blob (p, gone_after) where gone_after is not null;
create table hf_chunk (
  blob text collate "C" not null,
  n int not null,
  body bytea not null,
  primary key (blob, n));
alter table hf_chunk alter body set storage external;

-- n: the number of changes of the parts. ended: the completion, for as long as its version exists
create table hf_upload (
  b int not null,
  id text collate "C" not null,
  key bytea not null,
  n bigint not null default 0,
  record json not null,
  ended json,
  primary key (b, id));
create index hf_upload_open on hf_upload (b, key, id) where ended is null;
create table hf_upload_part (
  b int not null,
  id text collate "C" not null,
  n int not null,
  record json not null,
  blob text collate "C" not null,
  primary key (b, id, n));

-- Takes the turn n of a process, once. Error HF001: it was taken, so its transaction was committed.
-- A client that is stopped in the middle of a transaction loses it, and others go on.
create function hf_take_turn_1(id_ text, n_ bigint) returns void language plpgsql volatile as $$
begin
  perform set_config('idle_in_transaction_session_timeout', '10s', true);
  insert into hf_turn as t (id, n) values (id_, n_)
    on conflict (id) do update set n = n_, at = clock_timestamp() where t.n = n_ - 1;
  if not found then
    raise exception 'the turn % of % was taken', n_, id_ using errcode = 'HF001';
  end if;
end $$;

-- Locks the keys of some calls, each as it is to be judged. No rows: there is no such bucket.
--   keys_     distinct, in their order, so that two batches never wait for each other in a circle
--   slots_    the version that a call names: its slot, 0 for none, -1 for the null version
--   all_      the call needs every version of its key
--   uploads_  the upload that it changes; blobs_: the blob that it has written
create function hf_lock_keys_1(
  p_ int, name_ text, keys_ bytea[], slots_ bigint[], all_ boolean[], uploads_ text[], blobs_ text[]
) returns table (
  b int, config bigint, settings json, now_ms float8, slot bigint, null_slot bigint,
  newest_slot bigint, newest json, named_slot bigint, named json, versions json,
  upload json, upload_n bigint, upload_ended json, has_blob boolean)
language plpgsql volatile as $$
#variable_conflict use_column
declare b_ int; k int; o hf_object%rowtype; i int := 0; v record; config_ bigint; settings_ json;
begin
  select x.b into b_ from hf_bucket x where x.p = p_ and x.name = name_;
  if not found then return; end if;
  -- against the deletion of the bucket, which takes it alone
  perform pg_advisory_xact_lock_shared(7461, b_);
  for k in 1 .. cardinality(keys_) loop
    loop
      insert into hf_object (b, key, slot, live) values (b_, keys_[k], 0, false) on conflict do nothing;
      perform 1 from hf_object x where x.b = b_ and x.key = keys_[k] for update;
      -- else the key was removed meanwhile
      exit when found;
    end loop;
  end loop;
  -- after the rows of the keys: settings never go back along the versions of a key
  select x.n, x.settings into config_, settings_ from hf_bucket x where x.b = b_;
  if not found then return; end if;
  for k in 1 .. cardinality(keys_) loop
    b := b_; config := config_; settings := settings_;
    select * into strict o from hf_object x where x.b = b_ and x.key = keys_[k];
    slot := o.slot; null_slot := o.null_slot;
    newest_slot := null; newest := null; named_slot := null; named := null; versions := null;
    upload := null; upload_n := null; upload_ended := null; has_blob := null;
    select x.slot, x.entry into newest_slot, newest from hf_version x
      where x.b = b_ and x.key = keys_[k] order by x.slot desc limit 1;
    if slots_[k] <> 0 then
      select x.slot, x.entry into named_slot, named from hf_version x
        where x.b = b_ and x.key = keys_[k] and x.slot = case when slots_[k] < 0 then o.null_slot else slots_[k] end;
    end if;
    if all_[k] then
      select json_agg(json_build_object('slot', x.slot, 'entry', x.entry) order by x.slot) into versions
        from hf_version x where x.b = b_ and x.key = keys_[k];
    end if;
    if uploads_[k] <> '' then
      select x.record, x.n, x.ended into upload, upload_n, upload_ended from hf_upload x
        where x.b = b_ and x.id = uploads_[k] and x.key = keys_[k];
    end if;
    if blobs_[k] <> '' then
      perform 1 from hf_blob x where x.blob = blobs_[k] for update;
      has_blob := found;
    end if;
    now_ms := floor(extract(epoch from clock_timestamp()) * 1000);
    return next;
  end loop;
end $$;

-- Removes versions of locked keys. What nothing names any more stays for readers that have it open.
create function hf_remove_1(b_ int, keys_ bytea[], slots_ bigint[]) returns void language plpgsql volatile as $$
declare k int; v record;
begin
  for k in 1 .. cardinality(keys_) loop
    delete from hf_version x where x.b = b_ and x.key = keys_[k] and x.slot = slots_[k]
      returning x.blobs, x.upload into v;
    if v.blobs is not null then perform hf_drop_blobs_1(v.blobs); end if;
    if v.upload is not null then delete from hf_upload x where x.b = b_ and x.id = v.upload; end if;
  end loop;
end $$;

create function hf_drop_blobs_1(blobs_ text[]) returns void language sql volatile as $$
  update hf_blob set gone_after = clock_timestamp() + interval '1 hour' where blob = any(blobs_)
$$;

-- Brings rows of keys up to their versions, after removals; those without a version go.
create function hf_settle_keys_1(b_ int, keys_ bytea[]) returns void language plpgsql volatile as $$
declare k int; v record;
begin
  for k in 1 .. cardinality(keys_) loop
    select x.marker into v from hf_version x where x.b = b_ and x.key = keys_[k] order by x.slot desc limit 1;
    if not found then
      delete from hf_object x where x.b = b_ and x.key = keys_[k];
    else
      update hf_object x set live = not v.marker,
          null_slot = (select y.slot from hf_version y where y.b = b_ and y.key = x.key and y.slot = x.null_slot)
        where x.b = b_ and x.key = keys_[k];
    end if;
  end loop;
end $$;

-- Deletes an empty bucket: 'deleted', 'none' if there is none, or 'not empty'.
create function hf_delete_bucket_1(p_ int, name_ text, abort_ boolean) returns text language plpgsql volatile as $$
declare b_ int;
begin
  select b into b_ from hf_bucket where p = p_ and name = name_;
  if not found then return 'none'; end if;
  -- From here on no change of a key is in progress. What follows sees all that were committed.
  perform pg_advisory_xact_lock(7461, b_);
  perform 1 from hf_bucket where b = b_ for update;
  if not found then return 'none'; end if;
  if exists (select 1 from hf_version where b = b_) then return 'not empty'; end if;
  if abort_ then
    perform hf_drop_blobs_1(array(select blob from hf_upload_part where b = b_));
    delete from hf_upload_part where b = b_;
    delete from hf_upload where b = b_;
  elsif exists (select 1 from hf_upload where b = b_) then
    return 'not empty';
  end if;
  delete from hf_object where b = b_;
  delete from hf_bucket where b = b_;
  return 'deleted';
end $$;

-- A page of a listing, in order: one probe of the index for each key or common prefix.
--   from_, is_open_  where it begins: at this key, or behind it
--   all_             all versions of each key, newest first, also of keys that are not live
--   before_          of the key from_, only versions below this slot
-- Behind every key that begins with a text comes that text with the byte ff, which no UTF-8 has.
create function hf_list_1(
  b_ int, prefix_ bytea, delimiter_ bytea, from_ bytea, is_open_ boolean, all_ boolean, before_ bigint, limit_ int
) returns table (name bytea, is_prefix boolean, slot bigint, is_latest boolean, entry json)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare key_ bytea; newest_ bigint; at_ bytea := from_; is_open boolean := is_open_; n int := 0; w int; got int;
  end_ bytea := prefix_ || '\\xff'::bytea;
begin
  while n < limit_ loop
    if all_ and is_open then
      select x.key into key_ from hf_object x where x.b = b_ and x.key >= at_ and x.key < end_ order by x.key limit 1;
    elsif all_ then
      select x.key into key_ from hf_object x where x.b = b_ and x.key > at_ and x.key < end_ order by x.key limit 1;
    elsif is_open then
      select x.key into key_ from hf_object x where x.b = b_ and x.live and x.key >= at_ and x.key < end_
        order by x.key limit 1;
    else
      select x.key into key_ from hf_object x where x.b = b_ and x.live and x.key > at_ and x.key < end_
        order by x.key limit 1;
    end if;
    exit when not found;
    w := case when delimiter_ = ''::bytea then 0 else position(delimiter_ in substr(key_, length(prefix_) + 1)) end;
    is_open := false;
    if w > 0 then
      name := substr(key_, 1, length(prefix_) + w - 1 + length(delimiter_));
      is_prefix := true; slot := null; is_latest := null; entry := null;
      at_ := name || '\\xff'::bytea;
      n := n + 1;
      return next;
      continue;
    end if;
    at_ := key_;
    select x.slot into newest_ from hf_version x where x.b = b_ and x.key = key_ order by x.slot desc limit 1;
    return query select key_, false, x.slot, x.slot = newest_, x.entry from hf_version x
      where x.b = b_ and x.key = key_ and (key_ <> from_ or before_ is null or x.slot < before_)
      order by x.slot desc limit case when all_ then limit_ - n else 1 end;
    get diagnostics got = row_count;
    n := n + got;
  end loop;
end $$;
`;

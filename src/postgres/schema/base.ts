// Schema version 1: the tables that all capabilities share: parts, sessions, chains and holds.
//
// `p` is the id of a part, and begins every key. States are `json`, not `jsonb`, which refuses NUL and
// changes the order of keys.

export const baseSchema: string = `
-- the parts of stores: the ground of each, its logs, boxes and object stores
create table hf_part (
  p int generated always as identity primary key,
  store text collate "C" not null,
  room text collate "C" not null,
  name text collate "C" not null,
  id text collate "C" not null,
  made_at timestamptz not null default clock_timestamp(),
  unique (store, room, name));

-- one row for each session of a process; "dead" is set once, by the clock of the server
create table hf_holder (
  p int not null,
  id text collate "C" not null,
  record json not null,
  lease_ms bigint not null,
  seen timestamptz not null default clock_timestamp(),
  dead timestamptz,
  primary key (p, id)) with (fillfactor = 50);

-- states that processes swap; ids: the last appends, each as number:id, newest first
create table hf_chain (
  p int not null,
  name text collate "C" not null,
  n bigint not null,
  ids text[] not null default '{}',
  state json not null,
  primary key (p, name)) with (fillfactor = 50);

-- a row for each request of the lock table that stands; offered: when it was offered to a receiver
create table hf_hold (
  p int not null,
  id text collate "C" not null,
  offered timestamptz,
  primary key (p, id));
`;

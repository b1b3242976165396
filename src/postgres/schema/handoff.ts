// Schema version 3: hand-off boxes.
//
// A ticket is one row, and each of its steps changes that row once. A claim is identified by its
// holder and a serial number that the holder never reuses. The commit of a claim does not wait for a
// sync, so a crash of the server may undo it, and the next claim then has the same count.
import { handoffFunctions } from "./handoff-functions.ts";

export const handoffSchema: string = `
create table hf_box (
  p int primary key,
  paused json);

-- A group, locked by whoever changes which of its tickets is the next one. last: the highest place
-- that a ticket got; ready: when its next ticket can be claimed, null if there is none, or if it is
-- claimed or parked
create table hf_lane (
  p int not null,
  grp text collate "C" not null,
  last bigint not null default 0,
  ready timestamptz,
  primary key (p, grp)) with (fillfactor = 50);
create index hf_lane_ready on hf_lane (p, ready) where ready is not null;

-- state: i(ncoming), d(elayed), p(rocessing), k(ept: parked), a(rchive), e(rror)
-- place: in its lane; entered: when it last entered the queue; kept: the paths of a parked claim
create table hf_ticket (
  p int not null,
  id text collate "C" not null,
  state "char" not null,
  priority smallint not null,
  grp text collate "C",
  place bigint,
  entered timestamptz not null,
  due timestamptz,
  created timestamptz(3) not null,
  not_before timestamptz(3),
  expires timestamptz(3),
  key text collate "C" not null,
  keyed boolean not null,
  claims int not null default 0,
  forgiven int not null default 0,
  replays int not null default 0,
  duplicate boolean not null default false,
  holder text collate "C",
  serial bigint,
  bytes bigint not null,
  manifest json not null,
  inline bytea,
  progress json,
  settled timestamptz,
  kept json,
  primary key (p, id)) with (fillfactor = 70);
alter table hf_ticket alter inline set storage external;
create index hf_ticket_next on hf_ticket (p, priority, entered, id) where state = 'i' and grp is null;
create index hf_ticket_lane on hf_ticket (p, grp, place) where place is not null and state in ('i', 'p', 'k');
create index hf_ticket_due on hf_ticket (p, due, id) where state in ('d', 'k');
create index hf_ticket_held on hf_ticket (p, holder, id) where state = 'p';
create index hf_ticket_done on hf_ticket (p, state, settled, id) where state in ('a', 'e');

-- the outcome of one claim; the first note stays
create table hf_note (
  p int not null,
  id text collate "C" not null,
  claims int not null,
  attempt int not null,
  at timestamptz(3) not null default clock_timestamp(),
  outcome text not null,
  reason text not null,
  holder text collate "C" not null,
  primary key (p, id, claims));

create table hf_key (
  p int not null,
  key text collate "C" not null,
  id text collate "C" not null,
  primary key (p, key));

-- the ledger; owner: of the rows of its outputs
create table hf_done (
  p int not null,
  key text collate "C" not null,
  replays int not null,
  id text collate "C" not null,
  claims int not null,
  holder text collate "C" not null,
  serial bigint not null,
  at timestamptz(3) not null default clock_timestamp(),
  result json,
  outputs json not null default '[]',
  owner text collate "C",
  primary key (p, key, replays));
create index hf_done_at on hf_done (p, at);

-- the files of large tickets, and outputs, in pieces
create table hf_payload (
  p int not null,
  owner text collate "C" not null,
  name text collate "C" not null,
  part int not null,
  body bytea not null,
  primary key (p, owner, name, part));
alter table hf_payload alter body set storage external;

-- owners of pieces that no ticket and no ledger entry has yet; those of dead holders are swept
create table hf_staged (
  p int not null,
  owner text collate "C" not null,
  ground int not null,
  holder text collate "C" not null,
  primary key (p, owner));
${handoffFunctions}`;

// Lists and counts the tickets of a box, by its indexes.
import type { HandoffStats, ListOptions, TicketInfo, TicketState } from "../../handoff/model/handoff.ts";
import type { CountedTickets } from "../../handoff/publish/backlog.ts";
import { keyOf } from "../connection/text.ts";
import type { PgBox } from "./pg-box.ts";
import { describeRows, doneJoin, ticketColumns, type TicketRow } from "./ticket-rows.ts";

const pageSize = 64;

/** A range of tickets in the order of an index. */
interface Run {
  readonly where: string;
  /** The columns of the index. */
  readonly order: readonly string[];
  /** Returns the values of these columns for the last row of a page. */
  readonly valuesOf: (row: TicketRow) => readonly unknown[];
}

const byTime = (where: string, column: "due" | "settled"): Run => ({
  where,
  order: [`t.${column}`, "t.id"],
  valuesOf: ({ at, id }) => [at, id],
});

/** Tickets of groups follow the others, each group in its order. */
const runs: Readonly<Record<TicketState, readonly Run[]>> = {
  incoming: [
    {
      where: "t.state = 'i' and t.grp is null",
      order: ["t.priority", "t.entered", "t.id"],
      valuesOf: ({ priority, at, id }) => [priority, at, id],
    },
    {
      where: "t.place is not null and t.state in ('i', 'p', 'k') and t.state = 'i'",
      order: ["t.grp", "t.place"],
      valuesOf: ({ grp, place }) => [grp, place],
    },
  ],
  delayed: [byTime("t.state in ('d', 'k') and t.state = 'd'", "due")],
  processing: [
    { where: "t.state = 'p'", order: ["t.holder", "t.id"], valuesOf: ({ holder, id }) => [holder, id] },
    byTime("t.state in ('d', 'k') and t.state = 'k'", "due"),
  ],
  archive: [byTime("t.state in ('a', 'e') and t.state = 'a'", "settled")],
  error: [byTime("t.state in ('a', 'e') and t.state = 'e'", "settled")],
};

/** Yields tickets in the order in which they will be processed, or were finished. */
export async function* listTickets(
  box: PgBox,
  state: TicketState,
  { limit = Infinity, group, skip = 0, backwards = false }: ListOptions,
): AsyncGenerator<TicketInfo> {
  let [left, toSkip] = [limit, Math.min(Math.floor(skip), Number.MAX_SAFE_INTEGER)];
  for (const run of backwards ? [...runs[state]].reverse() : runs[state])
    for (let last: TicketRow | undefined; left > 0;) {
      const size = Math.min(pageSize, left);
      const rows = await pageOf(box, run, { group, backwards, last, skip: toSkip, size });
      if (rows.length === 0) {
        toSkip -= toSkip > 0 ? await countUpTo(box, run, group, toSkip) : 0;
        break;
      }
      [toSkip, left] = [0, left - rows.length];
      yield* await describeRows(box, rows);
      last = rows.at(-1);
      if (rows.length < size) break;
    }
}

/** Yields, in pages, the ids of all tickets that are done or failed now. */
export async function* listIds(box: PgBox, state: "archive" | "error", olderMs = 0): AsyncGenerator<string[]> {
  const until = "t.settled <= clock_timestamp() - make_interval(secs => $4::float8 / 1000)";
  const letter = state === "archive" ? "a" : "e";
  const text = `select t.id, t.settled::text as at from hf_ticket t
    where t.p = $1 and t.state in ('a', 'e') and t.state = '${letter}' and (t.settled, t.id) > ($2::timestamptz, $3)
      and ${until} order by t.settled, t.id limit 256`;
  const begun = await box.nowMs();
  let [at, id] = ["-infinity", ""];
  for (;;) {
    // Excludes tickets that were settled meanwhile: a replayed ticket may end again.
    const age = olderMs + Math.max(0, (await box.nowMs()) - begun);
    const rows = await box.database.query<{ id: string; at: string }>(text, [box.p, at, id, age]);
    const last = rows.at(-1);
    if (last === undefined) return;
    [at, id] = [last.at, last.id];
    yield rows.map((row) => row.id);
  }
}

/** Counts tickets in one statement, so that a ticket that moves meanwhile is counted once. */
export async function statsOf({ database, p }: PgBox): Promise<HandoffStats> {
  const [row] = await database.query<
    Record<TicketState, number> & { holders: number; oldest_ms: number | null; paused: { reason?: string } | null }
  >(statsText, [p]);
  if (row === undefined) throw new Error("count returns a row");
  const { oldest_ms, paused, incoming, delayed, processing, archive, error, holders } = row;
  return {
    ...{ incoming, delayed, processing, archive, error, holders },
    ...(oldest_ms === null ? {} : { oldestIncomingMs: Math.max(0, oldest_ms) }),
    paused: paused !== null,
    ...(paused?.reason === undefined ? {} : { pauseReason: paused.reason }),
  };
}

const countOf = (where: string): string => `(select count(*) from hf_ticket t where t.p = $1 and ${where})`;

const statsText = `select
  ${countOf("t.state = 'i' and t.grp is null")} + ${countOf("t.place is not null and t.state in ('i', 'p', 'k') and t.state = 'i'")} as incoming,
  ${countOf("t.state in ('d', 'k') and t.state = 'd'")} as delayed,
  ${countOf("t.state = 'p'")} + ${countOf("t.state in ('d', 'k') and t.state = 'k'")} as processing,
  ${countOf("t.state in ('a', 'e') and t.state = 'a'")} as archive,
  ${countOf("t.state in ('a', 'e') and t.state = 'e'")} as error,
  (select count(distinct t.holder) from hf_ticket t where t.p = $1 and t.state = 'p') as holders,
  (select (extract(epoch from clock_timestamp() - min(o.entered)) * 1000)::float8 from (
    select x.entered from generate_series(0, 9) g(priority), lateral (
      select t.entered from hf_ticket t where t.p = $1 and t.state = 'i' and t.grp is null and t.priority = g.priority
      order by t.entered limit 1) x
    union all
    (select l.ready from hf_lane l where l.p = $1 and l.ready <= clock_timestamp() order by l.ready limit 1)) o) as oldest_ms,
  (select b.paused from hf_box b where b.p = $1) as paused`;

/** Counts waiting and claimed tickets, for the limits of the box. */
export async function countWaiting({ database, p }: PgBox, ids: ReadonlySet<string>): Promise<CountedTickets> {
  const [row] = await database.query<{ tickets: number; bytes: number; met: string[] }>(waitingText, [p, [...ids]]);
  return { tickets: row?.tickets ?? 0, bytes: row?.bytes ?? 0, met: new Set(row?.met) };
}

const waitingText = `with w as (
    select t.id, t.bytes from hf_ticket t where t.p = $1 and t.state = 'i' and t.grp is null
    union all select t.id, t.bytes from hf_ticket t
      where t.p = $1 and t.place is not null and t.state in ('i', 'p', 'k') and t.state = 'i'
    union all select t.id, t.bytes from hf_ticket t where t.p = $1 and t.state in ('d', 'k')
    union all select t.id, t.bytes from hf_ticket t where t.p = $1 and t.state = 'p')
  select count(*) as tickets, coalesce(sum(w.bytes), 0)::bigint as bytes,
    to_json(coalesce(array_agg(w.id) filter (where w.id = any ($2::text[])), '{}')) as met from w`;

async function pageOf(
  { database, p }: PgBox,
  { where, order, valuesOf }: Run,
  {
    group,
    backwards,
    last,
    skip,
    size,
  }: Pick<ListOptions, "group" | "backwards"> & {
    readonly last: TicketRow | undefined;
    readonly skip: number;
    readonly size: number;
  },
): Promise<TicketRow[]> {
  const values: unknown[] = [p];
  const add = (value: unknown): string => `$${values.push(value)}`;
  const after = last && valuesOf(last).map((value) => add(value));
  const conditions = [
    "t.p = $1",
    where,
    ...(group === undefined ? [] : [`t.grp = ${add(keyOf(group))}`]),
    ...(after === undefined ? [] : [`(${order.join(", ")}) ${backwards ? "<" : ">"} (${after.join(", ")})`]),
  ];
  const sorted = order.map((column) => `${column}${backwards ? " desc" : ""}`).join(", ");
  return await database.query<TicketRow & Record<string, unknown>>(
    `select ${ticketColumns} from hf_ticket t ${doneJoin} where ${conditions.join(" and ")}
       order by ${sorted} limit ${size} offset ${add(skip)}`,
    values,
  );
}

async function countUpTo(
  { database, p }: PgBox,
  { where }: Run,
  group: string | undefined,
  max: number,
): Promise<number> {
  const inGroup = group === undefined ? "" : "and t.grp = $3";
  const [row] = await database.query<{ count: number }>(
    `select count(*) as count from (select 1 from hf_ticket t where t.p = $1 and ${where} ${inGroup} limit $2) x`,
    [p, max, ...(group === undefined ? [] : [keyOf(group)])],
  );
  return row?.count ?? 0;
}

// Reads events by a query: each item reads a range of an index, and none scans the log.
import type { SequencedEvent } from "../../common.ts";
import type { EventCodec, StoredBody } from "../../events/model/codec.ts";
import type { Items } from "../../events/model/query.ts";
import type { TimeWindow } from "../../events/model/time-window.ts";
import type { Database } from "../connection/database.ts";
import { keyOf, unescaped } from "../connection/text.ts";

export interface EventRow {
  readonly pos: number;
  readonly id: string;
  readonly type: string;
  readonly tags: readonly string[];
  readonly more: readonly string[] | null;
  readonly body: StoredBody;
  readonly at_ms: number;
  readonly given: boolean;
  readonly long: { readonly id: string; readonly type: string } | null;
}

/** The columns of an `EventRow`, of a table or alias `e`. */
export const eventColumns: string = `e.pos, e.id, e.type, to_json(e.tags) as tags, to_json(e.more) as more, e.body, e.given, e.long,
  (extract(epoch from e.at) * 1000)::float8 as at_ms`;

/** Returns the type, id and tags of a stored event, as its author gave them. */
export function headOf({ id, type, tags, long }: EventRow): { id: string; type: string; tags: readonly string[] } {
  return { id: long?.id ?? unescaped(id), type: long?.type ?? unescaped(type), tags: tags.map(unescaped) };
}

export async function decodeRow(codec: EventCodec, row: EventRow): Promise<SequencedEvent> {
  const { id, type, tags } = headOf(row);
  const { data, metadata, untranslated } = await codec.decode({ id, type }, row.body);
  const time = new Date(row.at_ms).toISOString();
  const allTags = row.more === null ? tags : [...tags, ...row.more.map(unescaped)];
  return { position: row.pos, time, id, type, tags: allTags, data, metadata, ...untranslated };
}

export interface RowRange {
  /** Exclusive. */
  readonly after: number;
  readonly upTo: number;
  readonly backwards: boolean;
  readonly limit: number;
  readonly window?: TimeWindow | undefined;
}

/** Returns the first events of a query in a range, in the requested order. */
export async function readRows(database: Database, part: number, items: Items, range: RowRange): Promise<EventRow[]> {
  const values: unknown[] = [part, range.after, range.upTo, range.limit];
  const parameter = (value: unknown): string => `$${values.push(value)}`;
  const order = range.backwards ? "desc" : "asc";
  const within = (alias: string): string => `${alias}.p = $1 and ${alias}.pos > $2 and ${alias}.pos <= $3`;
  const first = (alias: string): string => `order by ${alias}.pos ${order} limit $4`;
  const times = timesOf(range.window, parameter);
  if (items.some(({ types, tags }) => types.length === 0 && tags.length === 0))
    return await database.query<EventRow>(
      `select ${eventColumns} from hf_event e where ${within("e")}${times} ${first("e")}`,
      values,
    );
  const ranges = items.flatMap(({ types, tags: [tag, ...others] }) => {
    const keys = types.map(keyOf);
    if (tag === undefined)
      return keys.map(
        (key) =>
          `(select e.pos from hf_event e where ${within("e")} and e.type = ${parameter(key)}${times} ${first("e")})`,
      );
    const ofType = keys.length === 0 ? "" : ` and t.type = any (${parameter(keys)}::text[])`;
    const hasOthers = others.map(
      (other) =>
        ` and exists (select 1 from hf_tag o where o.p = $1 and o.tag = ${parameter(keyOf(other))} and o.pos = t.pos)`,
    );
    const inTime =
      times === "" ? "" : ` and exists (select 1 from hf_event e where e.p = $1 and e.pos = t.pos${times})`;
    return [
      `(select t.pos from hf_tag t where ${within("t")} and t.tag = ${parameter(keyOf(tag))}${ofType}${hasOthers.join("")}${inTime} ${first("t")})`,
    ];
  });
  return await database.query<EventRow>(
    `select ${eventColumns} from (select pos from (${ranges.join(" union ")}) r order by pos ${order} limit $4) f
       join hf_event e on e.p = $1 and e.pos = f.pos order by e.pos ${order}`,
    values,
  );
}

/**
 * Returns the range of positions that has all events of a time window; undefined if there are none.
 */
export async function rangeWithin(
  database: Database,
  part: number,
  window: TimeWindow,
): Promise<{ readonly after: number; readonly upTo: number } | undefined> {
  const [sinceMs, untilMs] = window.bounds;
  // The index by time has lines. A line with events has the time of its events.
  const [row] = await database.query<{ first: number | null; last: number | null }>(
    `select min(first) as first, max(first + events - 1) as last from hf_line
       where p = $1 and at >= ${moment("$2")} and at < ${moment("$3")} and events > 0`,
    [part, finite(sinceMs), finite(untilMs)],
  );
  const { first = null, last = null } = row ?? {};
  return first === null || last === null ? undefined : { after: first - 1, upTo: last };
}

function timesOf(window: TimeWindow | undefined, parameter: (value: unknown) => string): string {
  if (window === undefined) return "";
  const [sinceMs, untilMs] = window.bounds;
  return ` and e.at >= ${moment(parameter(finite(sinceMs)))} and e.at < ${moment(parameter(finite(untilMs)))}`;
}

function moment(milliseconds: string): string {
  return `to_timestamp(${milliseconds}::float8 / 1000)`;
}

/** Returns a finite value, or the name of an infinity for `to_timestamp`. */
function finite(milliseconds: number): number | string {
  return Number.isFinite(milliseconds) ? milliseconds : milliseconds > 0 ? "Infinity" : "-Infinity";
}

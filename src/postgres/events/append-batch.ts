// The appends that share one transaction, converted to the arguments of `hf_append_1`.
import { matchesItem, type Items } from "../../events/model/query.ts";
import type { StoredCondition } from "../../events/log/format/line.ts";
import type { EventHead } from "../../events/model/stored-event.ts";
import { arrayOf, escaped, keyOf } from "../connection/text.ts";

export interface BatchedAppend {
  readonly heads: readonly EventHead[];
  /** The JSON of each body. */
  readonly payload: readonly string[];
  readonly condition: { readonly items: Items; readonly after: number } | undefined;
  readonly stored: StoredCondition | undefined;
  /** The time of the events. Default: now, by the clock of the server. */
  readonly time?: string | undefined;
  /** True if it was sent before without an answer: its ids may be stored. */
  readonly isAgain: boolean;
}

/** The row that `hf_append_1` returns for each call. */
export interface AppendOutcome {
  readonly call: number;
  readonly outcome: "ok" | "refused" | "known";
  readonly a: number;
  readonly b: number;
}

export const appendStatement: string = `select * from hf_append_1($1, $2, $3, $4,
  $5::int[], $6::text[], $7::text[], $8::text[], $9::text[], $10::boolean[], $11::boolean[], $12::timestamptz[],
  $13::text[], $14::text[], $15::int[], $16::bigint[], $17::text[], $18::text[], $19::int[], $20::int[], $21::text[])`;

/** Returns all arguments but the first four. */
export function argumentsOf(calls: readonly BatchedAppend[]): unknown[] {
  const events = calls.flatMap((call, index) =>
    call.heads.map((head, each) => ({ ...call, call: index + 1, head, body: call.payload[each] ?? "" })),
  );
  const items = calls.flatMap(({ condition }, index) =>
    (condition?.items ?? []).map((item) => ({ ...item, call: index + 1, after: condition?.after ?? 0 })),
  );
  const dependencies = dependenciesOf(calls);
  return [
    events.map(({ call }) => call),
    events.map(({ head }) => keyOf(head.id)),
    events.map(({ head }) => keyOf(head.type)),
    events.map(({ head }) => arrayOf(head.tags.map(escaped))),
    events.map(({ body }) => body),
    events.map(({ head }) => head.given === true),
    events.map(({ head, isAgain }) => head.given === true || isAgain),
    events.map(({ time }) => time ?? null),
    events.map(({ head }) => longOf(head)),
    events.map(({ head }) => keysOf(head)),
    items.map(({ call }) => call),
    items.map(({ after }) => after),
    items.map(({ types }) => arrayOf(types.map(keyOf))),
    items.map(({ tags }) => arrayOf(tags.map(keyOf))),
    dependencies.map(([call]) => call),
    dependencies.map(([, event]) => event),
    calls.map(({ stored }) => (stored === undefined ? null : JSON.stringify(stored))),
  ];
}

/** Returns the events of this batch that match the condition of a later call, each as [call, event]. */
function dependenciesOf(calls: readonly BatchedAppend[]): [call: number, event: number][] {
  const dependencies: [call: number, event: number][] = [];
  const heads: EventHead[] = [];
  // Indexed by tag and by type: a batch of a thousand calls would otherwise need a million
  // comparisons.
  const byTag = new Map<string, number[]>();
  const byType = new Map<string, number[]>();
  for (const [index, { heads: own, condition }] of calls.entries()) {
    for (const item of condition?.items ?? []) {
      const [tag] = item.tags;
      const candidates =
        tag !== undefined
          ? (byTag.get(tag) ?? [])
          : item.types.length > 0
            ? item.types.flatMap((type) => byType.get(type) ?? [])
            : heads.map((_head, each) => each + 1);
      for (const event of candidates)
        if (matchesItem(item, heads[event - 1] as EventHead)) dependencies.push([index + 1, event]);
    }
    for (const head of own) {
      const event = heads.push(head);
      for (const tag of head.tags) note(byTag, tag, event);
      note(byType, head.type, event);
    }
  }
  return dependencies;
}

function note(events: Map<string, number[]>, key: string, event: number): void {
  const known = events.get(key);
  if (known === undefined) events.set(key, [event]);
  else known.push(event);
}

/** Returns the id and type as JSON if the row has a hash of one of them; otherwise null. */
function longOf({ id, type }: EventHead): string | null {
  return isShort(id) && isShort(type) ? null : JSON.stringify({ id, type });
}

/** Returns the keys of the tags; null if the tags are their own keys. */
function keysOf({ tags }: EventHead): string | null {
  return tags.every(isShort) ? null : arrayOf(tags.map(keyOf));
}

function isShort(text: string): boolean {
  return keyOf(text) === escaped(text);
}

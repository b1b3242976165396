// Queries: select events by type, by tags, or by any of several such items.
import type { NewEvent } from "../../common.ts";

/** Selects events that have one of `types` and all of `tags`. */
export interface QueryItem<Type extends string = string> {
  /** The event has one of these types. Default: any. */
  readonly types?: readonly Type[] | undefined;
  /** The event has all of these tags. Default: any. */
  readonly tags?: readonly string[] | undefined;
}
/** Selects all events, or those that match at least one item. */
export type Query<Type extends string = string> = "all" | QueryItem<Type> | readonly QueryItem<Type>[];

/** The events of the union E that the query Q can return: `{ types: ["Sold"] }` returns only Sold. */
export type Matching<E extends NewEvent, Q> = Q extends readonly (infer I)[] ? MatchingItem<E, I> : MatchingItem<E, Q>;
/** The events of the union E that one item I of a query can return. */
export type MatchingItem<E extends NewEvent, I> = string extends E["type"]
  ? E
  : I extends { readonly types: readonly (infer T)[] }
    ? OfType<E, T>
    : E;
/**
 * The events of the union E whose type is in T, also if one event has several types:
 * `NewEvent<"Sold" | "Returned">`.
 */
export type OfType<E extends NewEvent, T> = E extends unknown
  ? E["type"] extends T
    ? E
    : Extract<E["type"], T> extends never
      ? never
      : E & { type: Extract<E["type"], T> }
  : never;

/** A query as its items. An item without types and tags matches all events. */
export type Items = readonly { readonly types: readonly string[]; readonly tags: readonly string[] }[];

/** A larger query is a mistake. */
const itemsMax = 10_000;

/** Throws a TypeError for a value that is not a query. Missing parts of an item become empty lists. */
export function itemsOf(query: Query): Items {
  if (query === "all") return [{ types: [], tags: [] }];
  const items: readonly QueryItem[] = isList(query) ? query : [query];
  if (items.length === 0) throw new TypeError('A query needs at least one item; "all" means every event.');
  if (items.length > itemsMax) throw new RangeError(`A query has at most ${itemsMax} items, not ${items.length}.`);
  return items.map((item) => {
    if (typeof item !== "object" || item === null) throw new TypeError("An item of a query is { types?, tags? }.");
    // A misspelt property would be ignored, and the item would match every event.
    for (const key in item)
      if (key !== "types" && key !== "tags") throw new TypeError(`An item of a query has types and tags, not ${key}.`);
    return { types: textsOf(item.types, "types"), tags: textsOf(item.tags, "tags") };
  });
}

function textsOf(value: readonly string[] | undefined, what: string): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.some((text) => typeof text !== "string"))
    throw new TypeError(`The ${what} of a query must be a list of strings.`);
  return distinct(value);
}

export function matches(items: Items, event: { readonly type: string; readonly tags: readonly string[] }): boolean {
  return items.some((item) => matchesItem(item, event));
}

export function matchesItem(
  { types, tags }: Items[number],
  event: { readonly type: string; readonly tags: readonly string[] },
): boolean {
  return (types.length === 0 || types.includes(event.type)) && tags.every((tag) => event.tags.includes(tag));
}

/** Up to this length, searching a list is faster than a set. */
const shortLength = 8;

/** Returns a copy without duplicates, in order of first appearance. */
export function distinct(texts: readonly string[]): readonly string[] {
  const isShort = texts.length <= shortLength;
  return isShort && texts.every((text, index) => texts.indexOf(text) === index) ? texts.slice() : [...new Set(texts)];
}

/** Unlike `Array.isArray`, it also narrows a read-only list. */
export function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}

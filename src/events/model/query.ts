// Queries: events by type, by tags, or by any of several such items.
import type { NewEvent } from "../../common.ts";

/** The type is one of `types`, and all of `tags` are there. An absent part does not constrain. */
export interface QueryItem<Type extends string = string> {
  readonly types?: readonly Type[] | undefined;
  readonly tags?: readonly string[] | undefined;
}
/** Items are alternatives. */
export type Query<Type extends string = string> = "all" | QueryItem<Type> | readonly QueryItem<Type>[];

/** The events of the union E that Q can return: `{ types: ["Sold"] }` gives only Sold. */
export type Matching<E extends NewEvent, Q> = Q extends readonly (infer I)[] ? MatchingItem<E, I> : MatchingItem<E, Q>;
type MatchingItem<E extends NewEvent, I> = string extends E["type"]
  ? E
  : I extends { readonly types: readonly (infer T)[] }
    ? Extract<E, { type: T }>
    : E;

/** A query as its items; an item without types and tags means all events. */
export type Items = readonly { readonly types: readonly string[]; readonly tags: readonly string[] }[];

/** A larger query is a mistake. */
const itemsMax = 10_000;

/** TypeError for a value that is no query. Missing parts of an item become empty lists. */
export function itemsOf(query: Query): Items {
  if (query === "all") return [{ types: [], tags: [] }];
  const items: readonly QueryItem[] = isList(query) ? query : [query];
  if (items.length === 0) throw new TypeError('A query needs at least one item; "all" means every event.');
  if (items.length > itemsMax) throw new RangeError(`A query has at most ${itemsMax} items, not ${items.length}.`);
  return items.map((item) => {
    if (typeof item !== "object" || item === null) throw new TypeError("An item of a query is { types?, tags? }.");
    // A misspelt part would be ignored, and the item would mean every event.
    for (const key in item)
      if (key !== "types" && key !== "tags") throw new TypeError(`An item of a query has types and tags, not ${key}.`);
    return { types: textsOf(item.types, "types"), tags: textsOf(item.tags, "tags") };
  });
}

function isList(query: Query): query is readonly QueryItem[] {
  return Array.isArray(query);
}

function textsOf(value: readonly string[] | undefined, what: string): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.some((text) => typeof text !== "string"))
    throw new TypeError(`The ${what} of a query are a list of texts.`);
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

/** Up to so many texts, a search through the list is quicker than a set. */
const shortLength = 8;

/** A copy without repetitions, in order of first appearance. */
export function distinct(texts: readonly string[]): readonly string[] {
  const isShort = texts.length <= shortLength;
  return isShort && texts.every((text, index) => texts.indexOf(text) === index) ? texts.slice() : [...new Set(texts)];
}

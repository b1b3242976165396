// Tags that were added to events after their append. There are few, so all of them are in memory.
import type { Items } from "../../model/query.ts";
import type { PositionRange } from "../../index/keys/indexed-line.ts";
import type { Retag } from "../format/line.ts";
import { sha256Of } from "../../../format/checksum.ts";

export class Retags {
  readonly #tagsOf = new Map<number, Set<string>>();
  readonly #positionsOf = new Map<string, Set<number>>();

  #checksum: string | undefined;

  /** A checksum of all added tags, in any order: equal in all processes that know the same tags. */
  get checksum(): string {
    return (this.#checksum ??= sha256Of(this.#pairs().sort().join()).slice(0, 16));
  }

  add({ positions, tags }: Retag): void {
    this.#checksum = undefined;
    for (const position of positions)
      for (const tag of tags) {
        entry(this.#tagsOf, position).add(tag);
        entry(this.#positionsOf, tag).add(position);
      }
  }

  #pairs(): string[] {
    return [...this.#tagsOf].flatMap(([position, tags]) => [...tags].map((tag) => JSON.stringify([position, tag])));
  }

  /** Returns the tags of an event, including those added later. */
  tagsOf(position: number, tags: readonly string[]): readonly string[] {
    const more = this.#tagsOf.get(position);
    return more === undefined ? tags : [...new Set([...tags, ...more])];
  }

  /**
   * Returns the positions of events that may match only because of added tags, in order. The caller checks each
   * event.
   */
  candidates(items: Items, { after, upTo }: PositionRange): readonly number[] {
    if (this.#positionsOf.size === 0) return [];
    const found = new Set<number>();
    for (const { tags } of items)
      for (const tag of tags)
        for (const position of this.#positionsOf.get(tag) ?? [])
          if (position > after && position <= upTo) found.add(position);
    return [...found].sort((a, b) => a - b);
  }
}

function entry<K, V>(map: Map<K, Set<V>>, key: K): Set<V> {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = new Set<V>();
  map.set(key, made);
  return made;
}

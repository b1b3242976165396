// Tags that were added to events after they were appended. Few, so all of them are kept in memory.
import { createHash } from "node:crypto";
import type { Items } from "../../model/query.ts";
import type { Range } from "../../index/indexed-line.ts";
import type { Retag } from "../format/line.ts";

export class Retags {
  readonly #tagsOf = new Map<number, Set<string>>();
  readonly #positionsOf = new Map<string, Set<number>>();

  #checksum: string | undefined;

  /** Of what was added, in whatever order it was read: the same in every process that knows the same. */
  get checksum(): string {
    return (this.#checksum ??= createHash("sha256").update(this.#pairs().sort().join()).digest("hex").slice(0, 16));
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

  /** An event's tags with those that came later. */
  tagsOf(position: number, tags: readonly string[]): readonly string[] {
    const more = this.#tagsOf.get(position);
    return more === undefined ? tags : [...new Set([...tags, ...more])];
  }

  /** Positions that an item may match only because of tags that came later, in order. The caller looks at them. */
  candidates(items: Items, { after, upTo }: Range): readonly number[] {
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

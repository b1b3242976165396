// What an index knows of a type, a tag or an id: 64 bits of it, the same in every process and every release, because index files are made of them.
import type { Items } from "../query.ts";

export interface KeyHash {
  readonly high: number;
  readonly low: number;
}

// The two lowest bits: a type, a tag and an id of the same text are three keys, whatever their hashes are.
const marks = { type: 0, tag: 1, id: 2 } as const;
export type KeyKind = keyof typeof marks;

/** Two lanes that are mixed after each UTF-16 unit, then with each other. Not against malice: who can make texts collide makes reading slower, never wrong. */
export function hashOf(kind: KeyKind, text: string): KeyHash {
  const mark = marks[kind];
  let high = 0x9e3779b9 ^ mark;
  let low = 0x85ebca6b ^ text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    high = Math.imul(high ^ unit, 0x9e3779b1);
    high ^= high >>> 15;
    low = Math.imul(low ^ unit, 0x85ebca77);
    low ^= low >>> 13;
  }
  high ^= Math.imul(low ^ (low >>> 16), 0x7feb352d);
  low ^= Math.imul(high ^ (high >>> 15), 0x846ca68b);
  high = Math.imul(high ^ (high >>> 16), 0xc2b2ae35);
  high ^= high >>> 13;
  return { high: high >>> 0, low: ((low & ~3) | mark) >>> 0 };
}

/** Alternatives: one of them must be there. */
export type Clause = readonly KeyHash[];
/** All clauses must hold; none at all means every event. */
export type HashedItem = readonly Clause[];

export function hashItems(items: Items): readonly HashedItem[] {
  return items.map(hashItem);
}

export function hashItem({ types, tags }: Items[number]): HashedItem {
  const clauses: Clause[] = tags.map((tag) => [hashOf("tag", tag)]);
  if (types.length > 0) clauses.push(types.map((type) => hashOf("type", type)));
  return clauses;
}

export function hashId(id: string): readonly HashedItem[] {
  return [[[hashOf("id", id)]]];
}

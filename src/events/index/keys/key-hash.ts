// The hash of a type, a tag or an id: 64 bits, the same in every process and every release, because
// index files consist of them.
import type { Items } from "../../model/query.ts";

export interface KeyHash {
  readonly high: number;
  readonly low: number;
}

// Stored in the two lowest bits: a type, a tag and an id with the same text are three different keys.
const marks = { type: 0, tag: 1, id: 2 } as const;
export type KeyKind = keyof typeof marks;

/**
 * Two 32-bit lanes, mixed after each UTF-16 unit and then with each other. It does not resist attacks: texts that
 * collide make reading slower, never wrong.
 */
export function hashOf(kind: KeyKind, text: string): KeyHash {
  let high = highSeedOf(kind);
  let low = lowSeedOf(text.length);
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    high = mixHigh(high, unit);
    low = mixLow(low, unit);
  }
  return finish(kind, high, low);
}

/** Hashes an ASCII text in `bytes`; same result as `hashOf`. */
export function hashOfAscii(kind: KeyKind, bytes: Uint8Array, from: number, to: number): KeyHash {
  let high = highSeedOf(kind);
  let low = lowSeedOf(to - from);
  for (let at = from; at < to; at++) {
    const unit = bytes[at] as number;
    high = mixHigh(high, unit);
    low = mixLow(low, unit);
  }
  return finish(kind, high, low);
}

function highSeedOf(kind: KeyKind): number {
  return 0x9e3779b9 ^ marks[kind];
}

function lowSeedOf(length: number): number {
  return 0x85ebca6b ^ length;
}

function mixHigh(high: number, unit: number): number {
  const mixed = Math.imul(high ^ unit, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

function mixLow(low: number, unit: number): number {
  const mixed = Math.imul(low ^ unit, 0x85ebca77);
  return mixed ^ (mixed >>> 13);
}

function finish(kind: KeyKind, highLane: number, lowLane: number): KeyHash {
  let high = highLane;
  let low = lowLane;
  high ^= Math.imul(low ^ (low >>> 16), 0x7feb352d);
  low ^= Math.imul(high ^ (high >>> 15), 0x846ca68b);
  high = Math.imul(high ^ (high >>> 16), 0xc2b2ae35);
  high ^= high >>> 13;
  return { high: high >>> 0, low: ((low & ~3) | marks[kind]) >>> 0 };
}

export interface IndexedEvent {
  readonly type: string;
  readonly tags: readonly string[];
  /** Also indexed if it was generated: after OUTCOME_UNKNOWN the caller appends again with that id. */
  readonly id?: string | undefined;
}

/** The keys of one event. */
export type EventKeys = readonly KeyHash[];

export function keysOf({ type, tags, id }: IndexedEvent): EventKeys {
  const keys = [hashOf("type", type)];
  for (const tag of tags) keys.push(hashOf("tag", tag));
  if (id !== undefined) keys.push(hashOf("id", id));
  return keys;
}

/** Alternatives: an event must have one of them. */
export type KeyClause = readonly KeyHash[];
/** All clauses must hold; an item without clauses matches every event. */
export type HashedItem = readonly KeyClause[];

export function hashItems(items: Items): readonly HashedItem[] {
  return items.map(hashItem);
}

export function hashItem({ types, tags }: Items[number]): HashedItem {
  const clauses: KeyClause[] = tags.map((tag) => [hashOf("tag", tag)]);
  if (types.length > 0) clauses.push(types.map((type) => hashOf("type", type)));
  return clauses;
}

export function hashId(id: string): readonly HashedItem[] {
  return [[[hashOf("id", id)]]];
}

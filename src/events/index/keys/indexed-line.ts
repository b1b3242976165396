// What an index needs to know of the log: its lines, its sealed segments, and ranges of positions.
import type { EventKeys } from "./key-hash.ts";

/** Where a line is. */
export interface LineAddress {
  readonly segment: number;
  /** The offset of its first byte in the segment. */
  readonly offset: number;
  /** Its length, with the newline. */
  readonly bytes: number;
  /** The position of its first event. */
  readonly first: number;
}

export interface IndexedLine extends LineAddress {
  /** The keys of each of its events. Empty for a line that only adds tags. */
  readonly keys: readonly EventKeys[];
}

/** A segment that does not grow any more. */
export interface SealedSegment {
  readonly number: number;
  /** The positions of its first and last event; `last` is `first - 1` when it has none. */
  readonly first: number;
  readonly last: number;
  readonly length: number;
  /**
   * Of its last line: eight hex digits. With the length it identifies the bytes that an index was
   * made from.
   */
  readonly checksum: string;
}

/** Positions from `after` (exclusive) up to `upTo` (inclusive). */
export interface PositionRange {
  readonly after: number;
  readonly upTo: number;
}

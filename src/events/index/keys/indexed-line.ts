// The parts of the log that an index works with: lines, sealed segments, and ranges of positions.
import type { EventKeys } from "./key-hash.ts";

/** The address of a line. */
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
  /** When it was appended, in milliseconds since 1970; NaN if the time cannot be read. */
  readonly timeMs: number;
  /** The keys of each of its events. Empty for a line that only adds tags. */
  readonly keys: readonly EventKeys[];
}

/** A segment that no longer grows. */
export interface SealedSegment {
  readonly number: number;
  /** The positions of its first and last event; `last` is `first - 1` if it has none. */
  readonly first: number;
  readonly last: number;
  readonly length: number;
  /**
   * Checksum of its last line: eight hex digits. With the length it identifies the bytes that an
   * index was built from.
   */
  readonly checksum: string;
}

/** Positions from `after` (exclusive) up to `upTo` (inclusive). */
export interface PositionRange {
  readonly after: number;
  readonly upTo: number;
}

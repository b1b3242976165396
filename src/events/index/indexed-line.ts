// What an index needs to know of a line of the log, and where the line is.
import type { EventKeys } from "./key-hash.ts";

export interface LinePlace {
  readonly segment: number;
  /** Of its first byte in the segment. */
  readonly offset: number;
  /** With the newline. */
  readonly bytes: number;
  /** The position of its first event. */
  readonly first: number;
}

export interface IndexedLine extends LinePlace {
  /** What each of its events is found by. None in a line that only adds tags. */
  readonly keys: readonly EventKeys[];
}

/** A segment to which nothing is added any more. */
export interface SealedSegment {
  readonly number: number;
  /** The positions of its first and last event; `last` is `first - 1` when it has none. */
  readonly first: number;
  readonly last: number;
  readonly length: number;
  /** Of its last line: eight hex digits. With the length it says which bytes an index was made of. */
  readonly checksum: string;
}

/** Positions from `after` (exclusive) up to `upTo` (inclusive). */
export interface Range {
  readonly after: number;
  readonly upTo: number;
}

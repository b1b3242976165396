// What a side of a copy does: it lists its items, or adds those of the other side. Each engine
// implements it for each capability.
import { holdfastError } from "../../errors.ts";

/** One thing that a part has, such as a ticket, or a key with all its versions. */
export interface TransferItem {
  /** Names the item. No two items of a part have the same name. */
  readonly id: string;
  /** All that both sides must have in common, as JSON. Two items are equal if their contents are. */
  readonly content: unknown;
  /** How many tickets or objects it has. */
  readonly count: number;
  /** Reads its files. Throws if one of them is damaged. */
  readonly check: (signal: AbortSignal) => Promise<void>;
}

/** A part that is copied from, or to. */
export interface TransferEnd<Item extends TransferItem> extends AsyncDisposable {
  /** The location of the part, without a password. */
  readonly shown: string;
  /** Returns what dead processes hold, so that every item has a state that lasts. */
  settle(): Promise<void>;
  /** Counts tickets or objects, for the progress. */
  total(): Promise<number>;
  /** Yields every item, always in the same order. Throws UNSUPPORTED for one that cannot be copied. */
  items(signal: AbortSignal): AsyncIterable<Item>;
  /**
   * Keeps other processes from working on what has arrived so far. `from` is the location that is copied. Returns a
   * function that undoes this, for a copy that fails before it adds anything.
   */
  begin(from: string): Promise<() => Promise<void>>;
  /** Adds items that the part does not have. Durable when it resolves. */
  add(items: readonly Item[], signal: AbortSignal): Promise<void>;
  /** Takes over the state of the part itself, once all items have arrived. */
  finish(from: TransferEnd<Item>): Promise<void>;
}

/** Throws UNSUPPORTED for something that would not arrive as it is. */
export function cannotCopy(what: string, location: string, why: string): Error {
  return holdfastError("UNSUPPORTED", `${location}: ${what} cannot be copied: ${why}`, { what, location });
}

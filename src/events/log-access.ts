// What the rooms around the log (subscriptions, consumers, read models) may know of it, beside the public interface.
//
// Events never change, but two things can happen to them: tags are added to them, so that a query finds what it did not find before; and a subject is forgotten, so
// that their data cannot be read any more. Neither has a position. The rules for whoever remembers what he has read:
// - It counts as long as no tags were added anywhere in the log. After that everything is read again, whatever the tags were.
// - What was read from a log with subjects that can be forgotten is never written to disk: a copy in plain text would outlive the key.
import type { Cancel } from "../common.ts";
import type { Ground } from "../durable/liveness/ground.ts";
import type { Ports } from "../ports/ports.ts";

export interface LogAccess {
  readonly ports: Ports;
  /** Opens the log if that is still to be done, as with one in memory. */
  opened(): Promise<void>;
  /** Only after `opened`. */
  readonly ground: Ground;
  /** Of the log; `consumers/` and `projections/` are made in it by those who need them. */
  readonly directory: string;
  /** Resolves with the head as soon as it is beyond `position`: by hints on a local disk, by looking again on a network mount. */
  waitBeyond(position: number, options?: Cancel): Promise<number>;
  /** The head, and nothing that is appended by this store after this call is before it. */
  headBeforeAppends(): Promise<number>;
  /** Eight hex digits: of the line that has this position, which tells this log from one that was restored. Undefined beyond the head; zeros for 0. */
  findChecksum(position: number): Promise<string | undefined>;
  /** Of all tags that were added to events later, as of now: who remembers what a query has found compares it before he goes on from there. */
  tagChecksum(): Promise<string>;
  /** It was opened with keys of subjects: what is read from it must not be kept in plain text anywhere else. */
  readonly mayForget: boolean;
}

const accesses = new WeakMap<object, LogAccess>();

/** Said once by the store itself. */
export function giveAccess(store: object, access: LogAccess): void {
  accesses.set(store, access);
}

/** TypeError for an object that only looks like an event store of this package. */
export function accessOf(store: object): LogAccess {
  const access = accesses.get(store);
  if (access === undefined) throw new TypeError("This needs an event store of openEvents or memoryEvents.");
  return access;
}

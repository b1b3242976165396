// What subscriptions, consumers and read models may know of an open log, beside its public
// interface.
//
// Events never change, but two things can happen to them, and neither has a position: tags are
// added, so that a query finds more than before; and a subject is forgotten, so that its data
// cannot be read any more. The rules for code that keeps what it has read:
// - It is valid until tags are added anywhere in the log. Then everything is read again, whatever
//   the tags were.
// - Events of a log with subjects that can be forgotten are never written to disk: plain text would
//   outlive the key.
import type { Cancel } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import type { Ports } from "../../ports/ports.ts";

export interface LogAccess {
  readonly ports: Ports;
  /** Opens the log if it is not open yet, as a log in memory. */
  opened(): Promise<void>;
  /** Only after `opened`. */
  readonly ground: Ground;
  /** The directory of the log. Consumers and projections make theirs in it. */
  readonly directory: string;
  /**
   * Resolves with the head once it is beyond `position`: by hints on a local disk, by polling on a
   * network mount.
   */
  waitBeyond(position: number, options?: Cancel): Promise<number>;
  /** The head. Everything that this store appends after this call comes after it. */
  headBeforeAppends(): Promise<number>;
  /**
   * The checksum of the line with this position, eight hex digits: it tells this log from a
   * restored one. Undefined beyond the head; zeros for position 0.
   */
  findChecksum(position: number): Promise<string | undefined>;
  /**
   * A checksum of all tags that were added to events. Code that keeps the result of a query
   * compares it before it goes on.
   */
  tagChecksum(): Promise<string>;
  /** The log was opened with keys of subjects: no plain text of it may be kept elsewhere. */
  readonly mayForget: boolean;
}

const accesses = new WeakMap<object, LogAccess>();

/** Called once, by the store itself. */
export function giveAccess(store: object, access: LogAccess): void {
  accesses.set(store, access);
}

/** TypeError for an object that is no event store of this package. */
export function accessOf(store: object): LogAccess {
  const access = accesses.get(store);
  if (access === undefined) throw new TypeError("This needs an event store of openEvents or memoryEvents.");
  return access;
}

// The access to an open log that subscriptions, consumers and read models have beside its public
// interface.
//
// Events never change, but two things can happen to them that have no position: tags are added, so
// a query finds more than before; and a subject is forgotten, so its data can no longer be read.
// The rules for code that keeps results:
// - A result is valid until tags are added anywhere in the log. Then everything is read again,
//   whatever the tags.
// - Events of a log with erasable subjects are never written to disk: plain text would outlive the
//   key.
import type { Cancel } from "../../common.ts";
import type { Liveness } from "../../durable/liveness/liveness.ts";
import type { LeaseGround } from "../../part/leases.ts";
import type { Ports } from "../../ports/ports.ts";
import type { DerivedData } from "./derived-data.ts";

export interface LogAccess {
  readonly ports: Pick<Ports, "clock" | "random">;
  /** Opens the log if it is not open yet, as a log in memory is. */
  opened(): Promise<void>;
  /** Available only after `opened`. */
  readonly ground: Liveness;
  /** Available only after `opened`. */
  readonly derived: DerivedData;
  /** Opens the log if it is not open yet. */
  openLeaseGround(): Promise<LeaseGround>;
  /** The directory of the log, or its name in a database. Consumers and projections have theirs in it. */
  readonly directory: string;
  /** True if a checkpoint of another machine may be visible before the position that it names. */
  readonly mayLag: boolean;
  /**
   * Resolves with the head once it is beyond `position`. Uses hints on a local disk, and polls on a network mount.
   */
  waitBeyond(position: number, options?: Cancel): Promise<number>;
  /** Returns the head. Everything that this store appends after this call comes after it. */
  headBeforeAppends(): Promise<number>;
  /**
   * Returns the checksum of the line with this position, as eight hex digits. It distinguishes this log from a
   * restored one. Undefined beyond the head; zeros for position 0.
   */
  findChecksum(position: number): Promise<string | undefined>;
  /**
   * Returns a checksum of all tags added to events. Code that stores the result of a query compares it before it
   * continues.
   */
  tagChecksum(): Promise<string>;
  /** True if the log was opened with keys of subjects: its plain text must not be stored anywhere else. */
  readonly mayForget: boolean;
}

const accesses = new WeakMap<object, LogAccess>();

/** Called once, by the store itself. */
export function giveAccess(store: object, access: LogAccess): void {
  accesses.set(store, access);
}

/** Throws a TypeError for an object that is not an event store of this package. */
export function accessOf(store: object): LogAccess {
  const access = accesses.get(store);
  if (access === undefined) throw new TypeError("This needs an event store of openEvents or memoryEvents.");
  return access;
}

// The verbs of path locks: what they share, and the handle of a hold, which calls them.
import type { Cancel, Waiting } from "../../common.ts";
import type { Interop } from "../interop/interop.ts";
import type { Keys } from "../naming/lock-key.ts";
import type { Claim } from "../table/claim.ts";
import type { LockTable } from "../table/lock-table.ts";
import type { Grant } from "./grant.ts";
import type { LocalQueue } from "./local-queue.ts";
import type { HoldMonitor } from "./monitor.ts";
import type { LockChange, PathHold } from "./path-hold.ts";
import type { AcquireManyOptions, LockRequest } from "./path-locks.ts";

/** What the verbs share: one for each opening of a lock table. */
export interface LocksContext {
  readonly table: LockTable;
  readonly keys: Keys;
  /** Of all callers of this process that do not ask within a hold. */
  readonly queue: LocalQueue<Grant>;
  readonly monitor: HoldMonitor;
  /** Lock files for foreign programs, if they were asked for. */
  readonly interop: Interop | undefined;
  /** Aborts when the locks are closed. */
  readonly closed: AbortSignal;
  /** Default for every wait. */
  readonly timeoutMs: number | undefined;
  readonly verbs: HoldVerbs;
}

/**
 * What callers do with locks and holds: a file for each. Tests replace some of them by known-wrong
 * variants.
 */
export interface HoldVerbs {
  acquire(locks: LocksContext, requests: readonly LockRequest[], options: AcquireManyOptions): Promise<PathHold>;
  receive(locks: LocksContext, token: string, options: Cancel): Promise<PathHold>;
  check(locks: LocksContext, grant: Grant): Promise<void>;
  upgrade(locks: LocksContext, grant: Grant, to: LockChange, options: Waiting): Promise<void>;
  downgrade(locks: LocksContext, grant: Grant, to: LockChange): Promise<void>;
  transfer(locks: LocksContext, grant: Grant, options: { readonly expiresMs?: number | undefined }): Promise<string>;
  release(locks: LocksContext, grant: Grant): Promise<void>;
}

/**
 * Refers to its grant and is referred to by nothing else: when the owner loses it, the grant can be
 * released.
 */
export class PathHoldHandle implements PathHold {
  readonly #locks: LocksContext;
  readonly #grant: Grant;

  constructor(locks: LocksContext, grant: Grant) {
    this.#locks = locks;
    this.#grant = grant;
  }

  /** The grant of a hold that `locks` gave out. TypeError for any other hold. */
  static grantOf(hold: PathHold, locks: LocksContext): Grant {
    if (hold instanceof PathHoldHandle && hold.#locks === locks) return hold.#grant;
    throw new TypeError("This hold was not given out by these locks.");
  }

  /** The locks that gave out a hold; undefined for what is no hold of path locks. */
  static contextOf(hold: PathHold): LocksContext | undefined {
    return hold instanceof PathHoldHandle ? hold.#locks : undefined;
  }

  get id(): string {
    return this.#grant.id;
  }
  get fence(): number {
    return this.#grant.fence;
  }
  get requests(): readonly Claim[] {
    // A copy, because the lock is what the original says.
    return this.#grant.asked.map((claim) => ({ ...claim }));
  }
  get signal(): AbortSignal {
    return this.#grant.signal;
  }
  get acquiredAt(): Date {
    return new Date(this.#grant.sinceMs);
  }
  get lastActiveAt(): Date {
    return new Date(this.#grant.lastActiveMs);
  }

  async refresh(): Promise<void> {
    await this.assertHeld();
    this.#grant.touch(this.#locks.table.ground.ports.clock);
  }
  async assertHeld(): Promise<void> {
    await this.#locks.verbs.check(this.#locks, this.#grant);
  }
  async upgrade(to: LockChange, options: Waiting = {}): Promise<void> {
    await this.#locks.verbs.upgrade(this.#locks, this.#grant, to, options);
  }
  async downgrade(to: LockChange): Promise<void> {
    await this.#locks.verbs.downgrade(this.#locks, this.#grant, to);
  }
  async transfer(options: { expiresMs?: number | undefined } = {}): Promise<string> {
    return await this.#locks.verbs.transfer(this.#locks, this.#grant, options);
  }
  async release(): Promise<void> {
    await this.#locks.verbs.release(this.#locks, this.#grant);
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

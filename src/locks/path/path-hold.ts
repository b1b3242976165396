// A path hold in the hands of its owner.
import type { Hold, Waiting } from "../../common.ts";
import type { Claim } from "../table/claim.ts";
import type { Grant } from "./grant.ts";
import type { LockChange } from "./upgrade.ts";

export interface PathHold extends Hold {
  readonly id: string;
  /**
   * Grows with every grant that could conflict, also with those within this hold: read it when you write, and pass it on to
   * what you write to.
   */
  readonly fence: number;
  readonly requests: readonly Claim[];
  readonly lastActiveAt: Date;
  /** Restarts `idleMs` and proves against the disk that the hold stands. LOCK_LOST. */
  refresh(): Promise<void>;
  /** LOCK_LOST. One look at the disk, which must show all that `requests` says. */
  assertHeld(): Promise<void>;
  /**
   * exact to tree, shared to exclusive, for all paths of this hold; its fence grows. Waits by trying again, because it never stands in the list twice. LOCK_TIMEOUT;
   * DEADLOCK when two upgrade against each other, or when somebody waits for this very hold.
   */
  upgrade(to: LockChange, options?: Waiting): Promise<void>;
  /**
   * Never waits for others. What was committed is done first: RESOURCE_BUSY, and nothing has changed, when it cannot be.
   * OUTCOME_UNKNOWN: the hold is narrower, and others may have to wait for a moment until they see it.
   */
  downgrade(to: LockChange): Promise<void>;
  /**
   * Gives the locks to whoever calls `locks.receive(token)`, here or on another machine; this hold ends, and all within it. Default `expiresMs`: the lease. TypeError
   * for a hold within another, because it ends with that one.
   */
  transfer(options?: { expiresMs?: number | undefined }): Promise<string>;
  /**
   * Idempotent; releasing what was lost is not an error. Waits for what is being committed under it, and ends all that is within it. RESOURCE_BUSY when something committed
   * cannot be completed now: nothing more can be done under it, its paths stay locked until then, and it is tried again by itself.
   */
  release(): Promise<void>;
}

/** What a hold can ask of the locks that it came from. */
export interface HoldKeeper {
  release(grant: Grant): Promise<void>;
  check(grant: Grant, options: { readonly isRefresh: boolean }): Promise<void>;
  upgrade(grant: Grant, to: LockChange, options: Waiting): Promise<void>;
  downgrade(grant: Grant, to: LockChange): Promise<void>;
  transfer(grant: Grant, options: { readonly expiresMs?: number | undefined }): Promise<string>;
}

/** Owns nothing but the way to its grant: when nobody has it any more, the grant can be released. */
export class KeptHold implements PathHold {
  readonly #keeper: HoldKeeper;
  readonly #grant: Grant;

  constructor(keeper: HoldKeeper, grant: Grant) {
    this.#keeper = keeper;
    this.#grant = grant;
  }

  /** The grant of a hold that `keeper` gave out. TypeError for anybody else's. */
  static grantOf(hold: PathHold, keeper: HoldKeeper): Grant {
    if (hold instanceof KeptHold && hold.#keeper === keeper) return hold.#grant;
    throw new TypeError("This hold was not given out by these locks.");
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
    await this.#keeper.check(this.#grant, { isRefresh: true });
  }
  async assertHeld(): Promise<void> {
    await this.#keeper.check(this.#grant, { isRefresh: false });
  }
  async upgrade(to: LockChange, options: Waiting = {}): Promise<void> {
    await this.#keeper.upgrade(this.#grant, to, options);
  }
  async downgrade(to: LockChange): Promise<void> {
    await this.#keeper.downgrade(this.#grant, to);
  }
  async transfer(options: { expiresMs?: number | undefined } = {}): Promise<string> {
    return await this.#keeper.transfer(this.#grant, options);
  }
  async release(): Promise<void> {
    await this.#keeper.release(this.#grant);
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

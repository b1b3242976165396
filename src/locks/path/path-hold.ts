// A hold as its owner sees it, and running work under a hold.
import type { Hold, LockMode, Waiting } from "../../common.ts";

/** The mode and sharing that an upgrade or downgrade changes to. An omitted property stays as it is. */
export type LockChange = LockMode | { readonly mode?: LockMode | undefined; readonly shared?: boolean | undefined };

/** A lock on one or several paths. */
export interface PathHold extends Hold {
  /** Unique; never reused. */
  readonly id: string;
  /**
   * The fencing token. It grows with every grant that could conflict, including grants within this
   * hold: read it when you write, and pass it to the system that you write to.
   */
  readonly fence: number;
  /** The locked paths. */
  readonly requests: readonly {
    /** The path, as it was requested. */
    readonly path: string;
    /** `exact` for one path, `tree` for everything below it as well. */
    readonly mode: LockMode;
    /** True if other shared holders are admitted. */
    readonly shared: boolean;
  }[];
  /** Time of the last `refresh` or commit; `idleMs` counts from it. */
  readonly lastActiveAt: Date;
  /** Restarts `idleMs`, and checks against the disk that the lock is still held. Throws LOCK_LOST. */
  refresh(): Promise<void>;
  /** Checks against the disk that all `requests` are still held. Throws LOCK_LOST. */
  assertHeld(): Promise<void>;
  /**
   * Changes exact to tree, or shared to exclusive, for all paths of this hold; its fence grows.
   * Waits by retrying, because its request is never in the table twice.
   *
   * Throws LOCK_TIMEOUT, LOCK_LOST, and DEADLOCK if two holds upgrade against each other, or if a
   * blocking request waits for this hold.
   */
  upgrade(to: LockChange, options?: Waiting): Promise<void>;
  /**
   * Changes tree to exact, or exclusive to shared. Waits for no other process. Committed changes
   * are completed first.
   *
   * Throws LOCK_LOST; RESOURCE_BUSY, without a change, if that is impossible now; and
   * OUTCOME_UNKNOWN if the hold was narrowed but others may see it only a moment later.
   */
  downgrade(to: LockChange): Promise<void>;
  /**
   * Offers the locks to the process that calls `receive` with the returned token, here or on
   * another machine. This hold ends, with all holds within it. Default `expiresMs`: the lease.
   * Throws LOCK_LOST, and a TypeError for a hold within another.
   */
  transfer(options?: { expiresMs?: number | undefined }): Promise<string>;
  /**
   * Releases the lock. Calling it again, or after the lock was lost, does nothing. Waits for
   * commits in progress, and ends all holds within this one.
   *
   * Throws RESOURCE_BUSY if a committed change cannot be completed now: the hold is of no more use,
   * its paths stay locked, and the release is retried in the background until it succeeds.
   */
  release(): Promise<void>;
}

/**
 * Runs `work` under a hold and always releases it. Passes errors of the work on unchanged. Throws LOCK_LOST if the
 * hold was lost before the work ended, because another process may have entered.
 */
export async function workUnder<H extends Hold, T>(hold: H, work: (hold: H) => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await work(hold);
  } catch (error) {
    // The caller gets the error of the work. If the release fails now, the lock ends with this process at the latest.
    await hold.release().catch(() => undefined);
    throw error;
  }
  const { aborted: wasLost, reason } = hold.signal;
  await hold.release();
  if (wasLost) throw reason;
  return result;
}

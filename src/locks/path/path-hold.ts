// A hold as its owner sees it, and how work under a hold is done.
import type { Hold, LockMode, Waiting } from "../../common.ts";
import type { Claim } from "../table/claim.ts";

/** The extent that an upgrade or downgrade goes to. What it leaves out stays as it is. */
export type LockChange = LockMode | { readonly mode?: LockMode | undefined; readonly shared?: boolean | undefined };

export interface PathHold extends Hold {
  readonly id: string;
  /**
   * Grows with every grant that could conflict, also with those within this hold: read it when you
   * write, and pass it on to what you write to.
   */
  readonly fence: number;
  readonly requests: readonly Claim[];
  readonly lastActiveAt: Date;
  /** Restarts `idleMs` and proves against the disk that the hold stands. LOCK_LOST. */
  refresh(): Promise<void>;
  /** LOCK_LOST. One look at the disk, which must show all that `requests` says. */
  assertHeld(): Promise<void>;
  /**
   * exact to tree, shared to exclusive, for all paths of this hold; its fence grows. Waits by
   * trying again, because its request is never in the table twice. LOCK_TIMEOUT; DEADLOCK when two
   * holds upgrade against each other, or when a request in the way waits for this hold.
   */
  upgrade(to: LockChange, options?: Waiting): Promise<void>;
  /**
   * Waits for no other process. What was committed is completed first: RESOURCE_BUSY, and nothing
   * has changed, when that is impossible now. OUTCOME_UNKNOWN: the hold is narrower, and it may
   * take a moment until others see that.
   */
  downgrade(to: LockChange): Promise<void>;
  /**
   * Offers the locks to the process that calls `locks.receive(token)`, here or on another machine.
   * This hold ends, with all holds within it. Default `expiresMs`: the lease. TypeError for a hold
   * within another, because it ends with that one.
   */
  transfer(options?: { expiresMs?: number | undefined }): Promise<string>;
  /**
   * Idempotent; releasing a lost hold is not an error. Waits for commits that are under way, and
   * ends all holds within this one. RESOURCE_BUSY when something committed cannot be completed now:
   * nothing more can be done under the hold, its paths stay locked, and the release is repeated in
   * the background until it succeeds.
   */
  release(): Promise<void>;
}

/**
 * Works under a hold and releases it in every case. An error of the work arrives unchanged. LOCK_LOST
 * when the hold was lost before the work ended: another process may have been inside, too.
 */
export async function workUnder<H extends Hold, T>(hold: H, work: (hold: H) => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await work(hold);
  } catch (error) {
    // The caller is told why the work failed. A lock that cannot be released now ends with this
    // process.
    await hold.release().catch(() => undefined);
    throw error;
  }
  const { aborted: wasLost, reason } = hold.signal;
  await hold.release();
  if (wasLost) throw reason;
  return result;
}

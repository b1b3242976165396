// Path locks, as callers see them.
import type { BlockingLock, Cancel, HolderInfo, LockMode, OpenOptions, Waiting } from "../../common.ts";
import type { PathHold } from "./path-hold.ts";

export interface LockRequest {
  path: string;
  /** Default "exact". */
  mode?: LockMode | undefined;
  /** Default false. */
  shared?: boolean | undefined;
}

export interface PathLocksOptions extends OpenOptions {
  /** A holder that is silent for this long is dead. Default 300_000. */
  leaseMs?: number | undefined;
  /** Default for every acquire. Default 0: fail at once. */
  timeoutMs?: number | undefined;
  /**
   * Write lock files of the `.ovlock` kind for foreign programs, and respect theirs. Default false.
   */
  interop?: boolean | undefined;
}

export interface AcquireOptions extends Waiting {
  mode?: LockMode | undefined;
  shared?: boolean | undefined;
  tag?: string | undefined;
  /**
   * Re-entry: what this hold already covers does not block. The new hold ends no later than this
   * one.
   */
  within?: PathHold | undefined;
  /**
   * The hold ends when neither `refresh()` nor a commit happened for so long: a bound for a task
   * that hangs in a live process. Default: none.
   */
  idleMs?: number | undefined;
}
export type AcquireManyOptions = Omit<AcquireOptions, "mode" | "shared">;

/** How long one caller waits, over all of its waits. */
export interface AcquireWait extends Waiting {
  /** By the monotonic clock. */
  readonly startMs: number;
}

export interface HeldLock extends BlockingLock {
  readonly holdId: string;
  readonly fence: number;
  readonly waiting: readonly {
    readonly path: string;
    readonly mode: LockMode;
    readonly shared: boolean;
    readonly holder: HolderInfo;
    readonly since: Date;
  }[];
}

export interface PathLocks extends AsyncDisposable {
  readonly root: string;
  /** Undefined when a conflicting lock is held: a lost race is an answer and not an error. */
  tryAcquire(path: string, options?: Omit<AcquireOptions, "timeoutMs">): Promise<PathHold | undefined>;
  /**
   * LOCK_TIMEOUT (also when `timeoutMs` is 0) names the holders in the way, since when and where;
   * DEADLOCK. If it is aborted before it resolves, it rejects, and releases what it has.
   */
  acquire(path: string, options?: AcquireOptions): Promise<PathHold>;
  /** All or none, in one grant: there is no order to keep. */
  acquireAll(requests: readonly (string | LockRequest)[], options?: AcquireManyOptions): Promise<PathHold>;
  /** Both ends as trees, in one grant. Neither needs to exist. */
  acquireMove(from: string, to: string, options?: AcquireManyOptions): Promise<PathHold>;
  /**
   * Releases in every case; an error of `work` arrives unchanged. LOCK_LOST when the lock was lost
   * before the work ended.
   */
  withLock<T>(
    what: string | LockRequest | readonly (string | LockRequest)[],
    work: (hold: PathHold) => Promise<T>,
    options?: AcquireOptions,
  ): Promise<T>;
  /**
   * Receives a transferred hold. NO_SUCH_TRANSFER when it was taken, has lapsed or never was. If it
   * is aborted after the hold was taken, it rejects, and releases the hold.
   */
  receive(token: string, options?: Cancel): Promise<PathHold>;
  list(options?: { under?: string | undefined }): Promise<HeldLock[]>;
  /** Evicts the holders of this path. What they commit later is refused. */
  break(path: string): Promise<HeldLock[]>;
  /** Releases what is held; the signals of those holds abort first. Waiting callers get CLOSED. */
  close(): Promise<void>;
}

// Path locks, as callers see them.
import type { BlockingLock, Cancel, HolderInfo, LockMode, NameRule, OpenOptions, Waiting } from "../../common.ts";
import type { PathHold } from "./path-hold.ts";

/** A path to lock. */
export interface LockRequest {
  /** The path: relative to the root, or absolute and below it. */
  path: string;
  /** `exact` for one path, `tree` for everything below it as well. Default `exact`. */
  mode?: LockMode | undefined;
  /** True to share the lock with other shared holders. Default false. */
  shared?: boolean | undefined;
}

/** Options of `openPathLocks`. */
export interface PathLocksOptions extends OpenOptions {
  /** A holder that is silent for this long is dead, and loses its locks. Default 300,000. */
  leaseMs?: number | undefined;
  /** Default `timeoutMs` of every acquire. Default 0: does not wait. */
  timeoutMs?: number | undefined;
  /**
   * `portable` refuses names that Windows refuses or changes, with INVALID_PATH; on Windows they are
   * always refused. It is recorded when the locks are first opened, and then holds for every process;
   * later, a process that passes it refuses them itself. Default: `portable` for new locks on a share.
   */
  names?: NameRule | undefined;
  /** Writes `.ovlock` files for foreign programs, and honours theirs. Default false. */
  interop?: boolean | undefined;
}

/** Options of `acquire`. */
export interface AcquireOptions extends Waiting {
  /** `exact` for one path, `tree` for everything below it as well. Default `exact`. */
  mode?: LockMode | undefined;
  /** True to share the lock with other shared holders. Default false. */
  shared?: boolean | undefined;
  /** A text for people, which `list` and LOCK_TIMEOUT report. Default: none. */
  tag?: string | undefined;
  /**
   * Makes the lock re-entrant: paths that the hold `within` covers do not block. The new hold ends no
   * later than `within`. Default: none.
   */
  within?: PathHold | undefined;
  /**
   * Ends the hold after this time without a `refresh` or a commit: a limit for a task that hangs in
   * a live process. Default: none.
   */
  idleMs?: number | undefined;
}
/** Options of `acquireAll` and `acquireMove`. */
export type AcquireManyOptions = Omit<AcquireOptions, "mode" | "shared">;

/** How long one caller waits, over all of its waits. */
export interface AcquireWait extends Waiting {
  /** By the monotonic clock. */
  readonly startMs: number;
}

/** A held path lock and the requests that wait for it. */
export interface HeldLock extends BlockingLock {
  /** The id of the hold. */
  readonly holdId: string;
  /** The fencing token of the hold. */
  readonly fence: number;
  /** The requests that wait for this lock. */
  readonly waiting: readonly {
    /** The requested path. */
    readonly path: string;
    /** `exact` for one path, `tree` for everything below it as well. */
    readonly mode: LockMode;
    /** True if it can be shared. */
    readonly shared: boolean;
    /** The process that waits. */
    readonly holder: HolderInfo;
    /** When it was requested. */
    readonly since: Date;
  }[];
}

/** Locks on paths below a root. After `close` every method throws CLOSED. */
export interface PathLocks extends AsyncDisposable {
  /** The tree whose paths are locked. */
  readonly root: string;
  /**
   * Acquires a lock if it is free. Returns undefined if a conflicting lock is held. Throws
   * INVALID_PATH and TOO_LARGE, and LOCK_LOST if `within` was lost.
   */
  tryAcquire(path: string, options?: Omit<AcquireOptions, "timeoutMs">): Promise<PathHold | undefined>;
  /**
   * Acquires a lock, and waits for at most `timeoutMs`. If it is aborted, it releases a lock that
   * it has already acquired.
   *
   * Throws LOCK_TIMEOUT (also if `timeoutMs` is 0) with the blocking holders, DEADLOCK,
   * INVALID_PATH, TOO_LARGE for a long `tag`, and LOCK_LOST if `within` was lost.
   *
   * @example
   * ```ts
   * await using hold = await locks.acquire("reports/2026", { mode: "tree", timeoutMs: 10_000 });
   * ```
   */
  acquire(path: string, options?: AcquireOptions): Promise<PathHold>;
  /**
   * Acquires several locks, all or none, in one grant: their order does not matter. Throws as
   * `acquire` does.
   */
  acquireAll(requests: readonly (string | LockRequest)[], options?: AcquireManyOptions): Promise<PathHold>;
  /** Acquires both ends of a move as trees, in one grant. Neither needs to exist. Throws as `acquire` does. */
  acquireMove(from: string, to: string, options?: AcquireManyOptions): Promise<PathHold>;
  /**
   * Runs `work` under the lock and always releases it. Passes errors of `work` on unchanged. Throws
   * as `acquire` does, and LOCK_LOST if the lock was lost before `work` ended.
   */
  withLock<T>(
    what: string | LockRequest | readonly (string | LockRequest)[],
    work: (hold: PathHold) => Promise<T>,
    options?: AcquireOptions,
  ): Promise<T>;
  /**
   * Receives a transferred hold. If it is aborted, it releases a hold that it has already received.
   * Throws NO_SUCH_TRANSFER if the token was used, has expired or never existed.
   */
  receive(token: string, options?: Cancel): Promise<PathHold>;
  /**
   * Lists the locks that are held on or below `under` (default: the root), with the requests that
   * wait for each.
   */
  list(options?: { under?: string | undefined }): Promise<HeldLock[]>;
  /** Evicts the holders of this path, and returns their locks. Later commits of those holders are refused. */
  break(path: string): Promise<HeldLock[]>;
  /** Aborts the signals of its holds, then releases them. Waiting callers get CLOSED. */
  close(): Promise<void>;
}

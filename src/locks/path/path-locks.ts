// Path locks: the public door to the lock table. Asking, waiting, holding, handing over, listing and breaking.
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
  /** Write lock files of the `.ovlock` kind as a mirror, and respect foreign ones. Default false. */
  interop?: boolean | undefined;
}

export interface AcquireOptions extends Waiting {
  mode?: LockMode | undefined;
  shared?: boolean | undefined;
  tag?: string | undefined;
  /** Re-entry: what this hold already covers does not block. The new hold ends no later than this one. */
  within?: PathHold | undefined;
  /** Let go by itself when neither `refresh()` nor a commit happened for so long: a bound for a task that hangs in a live process. Default: none. */
  idleMs?: number | undefined;
}
export type AcquireManyOptions = Omit<AcquireOptions, "mode" | "shared">;

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
  /** Undefined when somebody else has it: losing a race is an answer. */
  tryAcquire(path: string, options?: Omit<AcquireOptions, "timeoutMs">): Promise<PathHold | undefined>;
  /** LOCK_TIMEOUT (also when `timeoutMs` is 0) tells who blocks, since when and where; DEADLOCK. Whenever it is aborted before it resolves, it rejects, and what it has is released. */
  acquire(path: string, options?: AcquireOptions): Promise<PathHold>;
  /** All or nothing, one grant, no order to keep. */
  acquireAll(requests: readonly (string | LockRequest)[], options?: AcquireManyOptions): Promise<PathHold>;
  /** Both ends as trees, in one grant, whatever is there. */
  acquireMove(from: string, to: string, options?: AcquireManyOptions): Promise<PathHold>;
  /** Releases in every case; an error of `work` arrives unchanged. */
  withLock<T>(
    what: string | LockRequest | readonly (string | LockRequest)[],
    work: (hold: PathHold) => Promise<T>,
    options?: AcquireOptions,
  ): Promise<T>;
  /** Takes over what was transferred. NO_SUCH_TRANSFER when it was taken, expired or never was. Aborted when it has been taken already, it is released. */
  receive(token: string, options?: Cancel): Promise<PathHold>;
  list(options?: { under?: string | undefined }): Promise<HeldLock[]>;
  /** Evicts the holders of this path; whatever they do later is refused. */
  break(path: string): Promise<HeldLock[]>;
  /** Releases what is held; the signals of those holds abort first. Those that wait are told CLOSED. */
  close(): Promise<void>;
}

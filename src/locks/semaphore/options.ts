// The options of a semaphore: their types, checks and defaults.
import type { LockFileForm } from "./observe.ts";

/** Options of `new Semaphore`. */
export interface SemaphoreOptions {
  /**
   * A lock of this age is stale, unless its holder is known to be alive; null: never by age. All
   * users of one lock must pass the same value. Default 3,600,000.
   */
  staleMs?: number | null | undefined;
  /**
   * How often a waiter checks for a release by another program. A release by Holdfast wakes waiters
   * at once. Default 100.
   */
  retryMs?: number | undefined;
  /** Syncs the lock file, as the protocol demands. Default true. */
  fsync?: boolean | undefined;
  /**
   * Mode of the lock file; the umask may remove bits. Use 0o644 if programs of other users must
   * judge staleness. Default 0o600.
   */
  mode?: 0o600 | 0o644 | undefined;
  /**
   * `file`, or `directory`: the form of the protocol for NFSv3, which creates a directory at the
   * path with the record inside. Default `file`.
   */
  form?: "file" | "directory" | undefined;
  /**
   * The process that owns the lock: the lock ends with it, and any helper process that names the
   * same owner may release it. Default: this process.
   */
  owner?: { readonly pid: number } | undefined;
}

export interface SemaphoreSettings {
  readonly staleMs: number | null;
  readonly retryMs: number;
  readonly fsync: boolean;
  readonly mode: number;
  readonly form: LockFileForm;
  readonly ownerPid: number | undefined;
}

/** Throws a RangeError or TypeError for an invalid option. */
export function settingsOf(options: SemaphoreOptions): SemaphoreSettings {
  const { staleMs = 3_600_000, retryMs = 100, fsync = true, mode = 0o600, form = "file", owner } = options;
  if (staleMs !== null && !(staleMs >= 0)) throw new RangeError("staleMs must be a number of milliseconds, or null.");
  if (!(retryMs >= 1 && retryMs <= 2 ** 31 - 1))
    throw new RangeError("retryMs must be a number of milliseconds, at least 1.");
  if (typeof fsync !== "boolean") throw new TypeError("fsync must be true or false.");
  if (mode !== 0o600 && mode !== 0o644) throw new RangeError("mode must be 0o600 or 0o644.");
  if (form !== "file" && form !== "directory") throw new RangeError('form must be "file" or "directory".');
  const ownerPid = owner?.pid;
  if (ownerPid !== undefined && !(Number.isSafeInteger(ownerPid) && ownerPid >= 1))
    throw new RangeError("owner.pid must be the number of a process.");
  return { staleMs: staleMs === Infinity ? null : staleMs, retryMs, fsync, mode, form, ownerPid };
}

/** Throws a TypeError if it is not a string. */
export function checkTag(tag: string | undefined): string | undefined {
  if (tag !== undefined && typeof tag !== "string") throw new TypeError("tag must be a string.");
  return tag;
}

// The options of a semaphore: what a user may give, what is refused, and the defaults.
import type { LockForm } from "./observe.ts";

export interface SemaphoreOptions {
  /** Default 3_600_000; null: never stale by age. Must be the same for all users of one lock. */
  staleMs?: number | null | undefined;
  /**
   * Default 100. How often a waiter looks for a release by another program; releases by Holdfast
   * wake waiters at once.
   */
  retryMs?: number | undefined;
  /** Default true, as the protocol asks. */
  fsync?: boolean | undefined;
  /**
   * Default 0o600; 0o644 when programs of other users must be able to judge staleness. The umask
   * may remove bits.
   */
  mode?: 0o600 | 0o644 | undefined;
  /**
   * "directory": the protocol's form for NFSv3, `mkdir` of the path with the record inside. Default
   * "file".
   */
  form?: LockForm | undefined;
  /**
   * The process that the lock belongs to. Default: this one. For a helper that takes a lock for the
   * program that called it: the lock ends with that program, and another helper of the same program
   * may release it.
   */
  owner?: { readonly pid: number } | undefined;
}

export interface SemaphoreSettings {
  readonly staleMs: number | null;
  readonly retryMs: number;
  readonly fsync: boolean;
  readonly mode: number;
  readonly form: LockForm;
  readonly ownerPid: number | undefined;
}

/** RangeError or TypeError for an option that makes no sense. */
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

/** TypeError when it is not a string. */
export function checkTag(tag: string | undefined): string | undefined {
  if (tag !== undefined && typeof tag !== "string") throw new TypeError("tag must be a string.");
  return tag;
}

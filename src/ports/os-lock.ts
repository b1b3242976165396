// The lock of the operating system: it dies with the process that holds it.

export interface OsLock {
  /**
   * Opens `path` for locking, creating it when it is missing (it is never deleted: two holders on two inodes would exclude nobody).
   * UNSUPPORTED_DISK when this platform has no such locks.
   */
  open(path: string, options?: OsLockOptions): Promise<OsLockFile>;
}

export interface OsLockOptions {
  /** False: ENOENT when it is missing, and ELOOP when it is a symbolic link. Where several users can write, one may have put it there. */
  readonly create?: boolean | undefined;
}

/**
 * One descriptor. Two of them exclude each other, in one process as between processes of one kernel. Between machines only as far as server and mount
 * options go (`nolock`, `local_lock`, `nobrl`: not at all), and there it can be taken away from a living holder without a word.
 * Linux: an open-file-description lock on one far byte. macOS: flock. Windows: LockFileEx on one far byte, so that the file can be read.
 */
export interface OsLockFile {
  /** Takes the lock if it is free, else false. */
  tryLock(): Promise<boolean>;
  /**
   * Waits until it is ours, or rejects with the signal's reason. Uses no pool thread while it waits: seven waiters do not slow `readFile`. On a network
   * mount it asks again and again with jitter, because servers wake waiters seconds late.
   */
  lock(options?: { signal?: AbortSignal | undefined }): Promise<void>;
  unlock(): Promise<void>;
  /** Unlocks too. Idempotent. */
  close(): Promise<void>;
}

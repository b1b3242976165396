// The lock of the operating system: it ends with the process that holds it.
import { hasErrno } from "./disk-error.ts";

/** Locks of the operating system. A lock ends with the process that holds it. */
export interface OsLock {
  /**
   * Opens `path` for locking, and creates it if it does not exist. Throws UNSUPPORTED_DISK if this
   * platform has no such locks.
   */
  open(path: string, options?: OsLockOptions): Promise<OsLockFile>;
}

/** Options of `OsLock.open`. */
export interface OsLockOptions {
  /**
   * A text for people, which the file contains while it is locked through this descriptor. Unlocking
   * replaces it with blanks of the same length; a killed holder leaves it. All users of one file pass
   * notes of the same length, or none. The lock is granted even if the note cannot be written.
   * Default: none.
   */
  readonly note?: Uint8Array | undefined;
  /**
   * Called to create the file if it does not exist, or was deleted since it was opened. For a
   * directory of several users, each of whom must be able to open the file. With `make`, opening
   * follows no symbolic link (ELOOP), because another user may have created it. Default: the file is
   * created with the mode that the umask leaves.
   */
  readonly make?: (() => Promise<void>) | undefined;
}

/** Options of `OsLockFile.lock`. */
export interface OsLockWaiting {
  /** Cancels the wait. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Returns how long to pause before the next attempt; `waitedMs` is how long the caller has waited
   * (0 before the first attempt). A hint for a local volume, limited to 25 ms. Default: growing
   * pauses.
   */
  readonly pauseMs?: ((waitedMs: number) => number) | undefined;
}

/** Options of `OsLockFile.unlock`. */
export interface OsUnlocking {
  /**
   * True for a holder that will lock again in a moment: waiters are not woken, and the note stays.
   * It must lock and unlock once more when it is done. Default false.
   */
  readonly isBrief?: boolean | undefined;
}

/**
 * A file descriptor for locking. Two of them exclude each other, within one process and between
 * processes of one kernel. Between machines they do so only as far as server and mount options
 * allow (`nolock`, `local_lock`, `nobrl`: not at all), and a live holder can lose the lock without
 * notice. Linux: an open-file-description lock on one far byte. macOS: flock. Windows: LockFileEx
 * on one far byte, so that the file can be read.
 *
 * The kernel locks a file, not its name. So a grant counts only if the name leads to the locked
 * file; a file that was deleted, moved or replaced meanwhile is opened again. Otherwise a process
 * with the old file and one that opens the new file would both hold the lock. On a share this check
 * is omitted, because inode numbers may come from a cache: there the lock only reduces contention,
 * and a descriptor is used for one acquisition.
 */
export interface OsLockFile {
  /** Acquires the lock if it is free; returns false otherwise. */
  tryLock(): Promise<boolean>;
  /**
   * Waits for the lock, or rejects with the signal's reason. It polls with jitter: a wait occupies
   * no thread, and a cancelled wait leaves nothing behind.
   */
  lock(options?: OsLockWaiting): Promise<void>;
  /**
   * Returns true if the lock is held and the name still leads to the locked file. False: the file
   * was deleted or replaced, and another process may hold the lock of the new one.
   */
  isIntact(): Promise<boolean>;
  /**
   * Identifies the locked file; "" if none is locked. It is the same for all that lock it. A file
   * with notes never has the identity of another file, not even of a deleted one.
   */
  readonly identity: string;
  /** Releases the lock. */
  unlock(options?: OsUnlocking): Promise<void>;
  /** Releases the lock, and ends a wait with CLOSED. Calling it again does nothing. */
  close(): Promise<void>;
}

/** Opens an existing file, or creates it and then opens it. */
export async function openOrMake<T>(open: () => Promise<T>, make: () => Promise<void>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
  }
  await make();
  return await open();
}

/** Returns the bytes that replace the note when the lock is released. */
export function blanksFor(note: Uint8Array): Uint8Array {
  return new Uint8Array(note.length).fill(0x20);
}

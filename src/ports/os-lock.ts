// The lock of the operating system: it dies with the process that holds it.
import { hasErrno } from "./disk-error.ts";

export interface OsLock {
  /**
   * Opens `path` for locking, creating it when it is missing. UNSUPPORTED_DISK when this platform
   * has no such locks.
   */
  open(path: string, options?: OsLockOptions): Promise<OsLockFile>;
}

export interface OsLockOptions {
  /**
   * What the file says while it is locked through this descriptor, for people; blanks of the same
   * length when it is not. A killed holder's stays. Advisory: where it cannot be written, the lock
   * is granted all the same. All that lock one file give notes of one length, or none. Waiters of a
   * file with notes are woken by the blanks. A simulation leaves notes out.
   */
  readonly note?: Uint8Array | undefined;
  /**
   * Makes the file when it is missing, also when it was deleted since it was opened; another
   * process may do so at the same time. For a directory of several users, where each must be able
   * to open the file. One of them may also have put a symbolic link there, so with `make` no link
   * is followed (ELOOP). Without it, the file has the mode that the umask leaves.
   */
  readonly make?: (() => Promise<void>) | undefined;
}

export interface OsLockWaiting {
  readonly signal?: AbortSignal | undefined;
  /**
   * How long a hold usually takes here, as far as the waiter knows. A hint: on a local volume it
   * need not ask more often than that.
   */
  readonly usualHoldMs?: number | undefined;
}

/**
 * One descriptor. Two of them exclude each other, in one process as between processes of one
 * kernel. Between machines only as far as server and mount options go (`nolock`, `local_lock`,
 * `nobrl`: not at all), and there it can be taken away from a living holder without a word. Linux:
 * an open-file-description lock on one far byte. macOS: flock. Windows: LockFileEx on one far byte,
 * so that the file can be read.
 *
 * The kernel locks a file and not its name. So a grant counts only if the name leads to the file
 * that was locked: a file that was deleted, moved or replaced meanwhile is opened anew. Without
 * that, a process with the old file open and one that comes later would never exclude each other
 * again. Not on a share, where inode numbers may come from a cache and the lock is a courtesy;
 * there a descriptor lives for one acquisition only.
 */
export interface OsLockFile {
  /** Takes the lock if it is free, else false. */
  tryLock(): Promise<boolean>;
  /**
   * Resolves when the lock is held, or rejects with the signal's reason. Asks again and again with
   * jitter: a wait holds no thread, and a wait that was given up leaves nothing behind.
   */
  lock(options?: OsLockWaiting): Promise<void>;
  /**
   * Whether it is held, and the name still leads to the file that is locked. False: the file was
   * deleted or replaced under the holder, and another process may hold the lock of the new one.
   */
  isIntact(): Promise<boolean>;
  /**
   * Of the file that is locked now; "" when none is. The same for all that lock it. Of a file with
   * notes, it is never that of another one, also not of one that was deleted before.
   */
  readonly identity: string;
  unlock(): Promise<void>;
  /** Unlocks too, and ends a wait (CLOSED). Idempotent. */
  close(): Promise<void>;
}

/** Opens what is there, or makes it and opens it then. */
export async function openOrMake<T>(open: () => Promise<T>, make: () => Promise<void>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
  }
  await make();
  return await open();
}

/** What takes the place of a note when the lock is given up. */
export function blanksFor(note: Uint8Array): Uint8Array {
  return new Uint8Array(note.length).fill(0x20);
}

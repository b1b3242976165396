// Makes a path lock respect the semaphore file of the same path: a process may have acquired that
// before there was a store.
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError, isHoldfastError, type Waiting } from "../../index.ts";
import { Semaphore, type SemaphoreStatus } from "../../locks/index.ts";
import { TimeLeft } from "./patience.ts";

const lookAgainMs = 100;

/**
 * Resolves when no process works under the semaphore file. Call it while holding the path lock: a
 * process that acquires the file later finds the store, and releases the file again. Throws
 * LOCK_TIMEOUT.
 */
export async function waitForSemaphore(file: string, waiting: Waiting): Promise<void> {
  const patience = new TimeLeft(waiting);
  const semaphore = new Semaphore(file);
  for (;;) {
    waiting.signal?.throwIfAborted();
    const { locked, info, stale } = await statusOf(semaphore);
    if (!locked) return;
    if (info !== undefined) {
      // The semaphore is acquired for a moment. Like any acquire, that removes the files of dead
      // processes.
      const hold = await semaphore.acquire(patience.left());
      return await hold.release();
    }
    // Another program, such as a package manager, may have a file of this name. It is neither
    // waited for nor removed.
    if (stale) return;
    const { timeoutMs } = patience.left();
    if (timeoutMs === 0) throw unreadable(file, patience.waitedMs());
    await sleep(Math.min(timeoutMs, lookAgainMs));
  }
}

async function statusOf(semaphore: Semaphore): Promise<SemaphoreStatus> {
  try {
    return await semaphore.status();
  } catch (error) {
    // The directory is missing or the name is too long, so no semaphore file can exist there, and
    // none is held.
    if (isHoldfastError(error, "INVALID_PATH")) return { locked: false, stale: false, mine: false };
    throw error;
  }
}

function unreadable(path: string, waitedMs: number): HoldfastError {
  const message = `${path} may be the semaphore file of a running process: this user can read no record in it.`;
  return new HoldfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy: [] });
}

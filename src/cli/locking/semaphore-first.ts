// What a path lock owes to the semaphore file of the same path: a process may have taken that
// before there was a store.
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError, isHoldfastError, type Waiting } from "../../index.ts";
import { Semaphore, type SemaphoreStatus } from "../../locks/index.ts";
import { TimeLeft } from "./patience.ts";

const lookAgainMs = 100;

/**
 * Resolves when no process is at work under the semaphore file. To be asked with the path lock in
 * hand: a process that takes the file later finds the store, and lets go of it again. LOCK_TIMEOUT.
 */
export async function waitForSemaphore(file: string, waiting: Waiting): Promise<void> {
  const patience = new TimeLeft(waiting);
  const semaphore = new Semaphore(file);
  for (;;) {
    waiting.signal?.throwIfAborted();
    const { locked, info, stale } = await statusOf(semaphore);
    if (!locked) return;
    if (info !== undefined) {
      // Taken for a moment: so what is stale is judged, and what the dead have left is removed, as
      // by every process that takes it.
      const hold = await semaphore.acquire(patience.left());
      return await hold.release();
    }
    // A foreign file that only has such a name, as a package manager's: nothing to wait for, and
    // not ours to remove.
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
    // No directory for it, or too long a name: where none can be made, none is held.
    if (isHoldfastError(error, "INVALID_PATH")) return { locked: false, stale: false, mine: false };
    throw error;
  }
}

function unreadable(path: string, waitedMs: number): HoldfastError {
  const message = `${path} may be the semaphore file of a process that is at work: it has no record that this user can read.`;
  return new HoldfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy: [] });
}

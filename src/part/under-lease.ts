// Runs work in one process at a time: under a lease, and again under the next one if that was lost.
import { isHoldfastError } from "../errors.ts";
import type { PathHold } from "../locks/path/path-hold.ts";
import type { Leases } from "./leases.ts";
import type { LoopSignals } from "./loop.ts";

/**
 * "finished": the work is complete. "lost": another process has taken over, or will. "abandoned":
 * part of the work may still be running, because the time to drain was over.
 */
export type WorkOutcome = "finished" | "lost" | "abandoned";

/**
 * Runs `work` under the lease `name` until its outcome is not "lost", or until the loop is stopped. A process that
 * slept past its lease waits for it again, like any other.
 */
export async function underLease(
  leases: Leases,
  name: string,
  { stopping }: LoopSignals,
  work: (hold: PathHold) => Promise<WorkOutcome>,
): Promise<void> {
  while (!stopping.aborted) {
    let hold: PathHold;
    try {
      hold = await leases.acquire(name, stopping);
    } catch (error) {
      if (stopping.aborted) return;
      // The process slept while waiting.
      if (isHoldfastError(error, "LOCK_LOST")) continue;
      throw error;
    }
    try {
      if ((await work(hold)) !== "lost") return;
    } finally {
      // Only the outcome of the work counts. If the lease could not be released, it ends with this process.
      await hold.release().catch(() => undefined);
    }
  }
}

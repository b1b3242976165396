// Work that one of all processes does: under a lease, and again under the next one when that was
// lost.
import { isHoldfastError } from "../errors.ts";
import type { PathHold } from "../locks/path/path-hold.ts";
import type { Leases } from "./leases.ts";
import type { LoopSignals } from "./loop.ts";

/**
 * "finished": nothing more comes of it. "lost": another process has taken over, or will.
 * "abandoned": something of it may still be going on, because the time to drain was over.
 */
export type WorkOutcome = "finished" | "lost" | "abandoned";

/**
 * Runs `work` under the lease `name` until it has an outcome other than "lost", or the loop is
 * stopped. A process that slept past its lease waits for the next one like any other.
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
      // The process slept while it waited.
      if (isHoldfastError(error, "LOCK_LOST")) continue;
      throw error;
    }
    try {
      if ((await work(hold)) !== "lost") return;
    } finally {
      // The outcome of the work counts. A lease that could not be released ends with this process.
      await hold.release().catch(() => undefined);
    }
  }
}

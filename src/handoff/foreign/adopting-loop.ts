// Adopts until stopped: makes a pass when the watcher reports a change of the folder, and after a
// while in any case, because the watcher may miss a change.
import { isHoldfastError } from "../../errors.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Adopter } from "./adopter.ts";

export const everyMsDefault = 1_000;
/** Minimum time between passes: a producer that writes in small pieces triggers a hint for each. */
const distanceMs = 50;

export async function adoptUntilStopped(
  adopter: Pick<Adopter, "pass">,
  { clock, watch, random }: Pick<Ports, "clock" | "watch" | "random">,
  directory: string,
  everyMs: number,
  stopping: AbortSignal,
): Promise<void> {
  const sleeper = new Sleeper(clock);
  const unwatch = watch.start(directory, sleeper.wake);
  try {
    while (!stopping.aborted) {
      sleeper.forgetWakeUps();
      await passUnlessBusy(adopter, stopping);
      const pause = async (): Promise<void> => {
        await clock.sleep(Math.min(distanceMs, everyMs), { signal: stopping });
        // Jitter, so that several machines do not scan the folder at the same moments.
        await sleeper.sleep(everyMs * (0.8 + 0.4 * random.fraction()), stopping);
      };
      await pause().catch((error: unknown) => {
        if (!stopping.aborted) throw error;
      });
    }
  } finally {
    unwatch();
  }
}

/**
 * Neither a temporary failure nor a name that no ticket can have ends the loop. A file with such a
 * name stays in the folder.
 */
async function passUnlessBusy(adopter: Pick<Adopter, "pass">, stopping: AbortSignal): Promise<void> {
  try {
    await adopter.pass(stopping);
  } catch (error) {
    if (stopping.aborted) return;
    if (!isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "OUTCOME_UNKNOWN", "INVALID_NAME")) throw error;
  }
}

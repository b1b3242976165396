// Adopting until stopped: a pass whenever the folder may have changed, and after a while in any case. A hint of the
// watcher is never the truth: a file that no hint tells of is found by the next pass.
import { isHoldfastError } from "../../errors.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Adopter } from "./adopter.ts";

export const everyMsDefault = 1_000;
/** A producer that writes in small pieces gives a hint for each: passes keep this distance. */
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
        // Many machines that adopt from one folder drift apart.
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

/** What passes by itself does not end the loop; nor does a name that no ticket can have, which stays in the folder. */
async function passUnlessBusy(adopter: Pick<Adopter, "pass">, stopping: AbortSignal): Promise<void> {
  try {
    await adopter.pass(stopping);
  } catch (error) {
    if (stopping.aborted) return;
    if (!isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "OUTCOME_UNKNOWN", "INVALID_NAME")) throw error;
  }
}

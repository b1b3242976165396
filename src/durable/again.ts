// Doing a change again whose answer was lost because the server of a share went away: only where twice is the same as once.
import { isOutage } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";

/** A server that goes away each time it is asked for the same is no outage any more. */
const triesMax = 3;

/**
 * Does `change` in `directory`, and again when the server went away meanwhile: first it is waited for, by a look. For names that are used once, where "it is gone already" and "it is
 * there already" can only be our own doing, or are as good. A name that others may take meanwhile has to be looked at instead.
 */
export async function again<T>(disk: Disk, directory: string, change: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await change();
    } catch (error) {
      if (tries >= triesMax || !isOutage(error)) throw error;
    }
    await disk.canOpen(directory);
  }
}

// Repeats a change whose outcome is unknown, because the server of a share went away or did not
// know a handle. Only for changes that are the same when done twice.
import { hasErrno, isOutage } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";

/** A server that goes away at each of these requests has more than an outage. */
const triesMax = 3;

/**
 * Whether a change that failed like this may have happened, and a second request tells. ESTALE says
 * that the server did not know a handle which the client went by: not that the name is gone, and
 * not that the change was made by another process.
 */
export function isUnanswered(error: unknown): boolean {
  return isOutage(error) || hasErrno(error, "ESTALE");
}

/**
 * Makes `change` in `directory`, and repeats it when it is not known whether it happened. The
 * directory is opened first: that waits for the server, and makes a client that goes by a stale
 * handle look the names up anew. For names that are used once, where "it is gone already" and "it
 * is there already" can only come from this very change, or are as good. A name that other
 * processes may take meanwhile has to be looked at instead.
 */
export async function retryOutage<T>(disk: Disk, directory: string, change: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await change();
    } catch (error) {
      if (tries >= triesMax || !isUnanswered(error)) throw error;
    }
    await disk.canOpen(directory);
  }
}

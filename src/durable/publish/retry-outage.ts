// Repeats a change whose outcome is unknown because the server of a share was unreachable or did
// not know a handle. Only for idempotent changes.
import { hasErrno, isOutage } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { signal } from "../../telemetry/signals.ts";

/** If this many requests fail, the problem is not a short outage. */
const triesMax = 3;

/**
 * True if a change that failed with `error` may have happened and a second request can tell. ESTALE
 * means that the server did not know the client's handle. It does not mean that the name is gone,
 * or that another process made the change.
 */
export function isUnanswered(error: unknown): boolean {
  return isOutage(error) || hasErrno(error, "ESTALE");
}

/**
 * Makes `change` in `directory`, and repeats it if its outcome is unknown. The directory is opened
 * before the repetition: the open waits for the server, and a client with a stale handle looks the
 * names up again. Only for names that are used once, where "already gone" and "already exists" come
 * from this very change, or are equivalent. For a name that other processes may take, check the
 * name instead.
 */
export async function retryOutage<T>(disk: Disk, directory: string, change: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await change();
    } catch (error) {
      if (tries >= triesMax || !isUnanswered(error)) throw error;
      signal("holdfast:retry", () => ({ location: directory, attempt: tries, error }));
    }
    await disk.canOpen(directory);
  }
}

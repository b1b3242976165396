// Making what nobody else can have made: a name with random bits in it. If it is there already, an
// answer of ours was lost on the way.
import { hasErrno } from "../../ports/disk-error.ts";
import type { CreateFileOptions, Disk } from "../../ports/disk.ts";
import { retryOutage, isUnanswered } from "./retry-outage.ts";
import { parentOf } from "./directory.ts";

/** Two for a server that goes away once: what it had done by then stands in the way once more. */
const triesMax = 4;

export async function makeUniqueDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.mkdir(path));
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
  }
}

/**
 * A failure leaves nothing behind, as far as that can be helped: nobody but us, and who sweeps
 * after us, ever comes upon it.
 */
export async function createUniqueFile(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  options: CreateFileOptions,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await disk.createFile(path, bytes, options);
    } catch (error) {
      // Whole or not, it is made anew: nobody has been told of it.
      await disk.unlink(path).catch(() => undefined);
      if (tries >= triesMax || !(isUnanswered(error) || hasErrno(error, "EEXIST"))) throw error;
      // A server that is away is waited for by a look.
      if (isUnanswered(error)) await disk.canOpen(parentOf(path));
    }
  }
}

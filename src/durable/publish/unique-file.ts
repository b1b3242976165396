// Making what nobody else can have made: a name with random bits in it. If it is there already, an answer of ours was lost on the way.
import { hasErrno } from "../../ports/disk-error.ts";
import type { CreateFileOptions, Disk, DiskFile } from "../../ports/disk.ts";
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

/** Opened empty, for reading and writing. EEXIST on a local disk, where no answer is lost: then the name was not unique. */
export async function openUniqueFile(disk: Disk, path: string): Promise<DiskFile> {
  for (let tries = 1; ; tries++) {
    try {
      return await disk.open(path, "create");
    } catch (error) {
      const mayBeOurs = isUnanswered(error) || hasErrno(error, "EEXIST");
      if (tries >= triesMax || disk.volume.kind === "local" || !mayBeOurs) throw error;
      // An earlier request of this call made it, and its answer was lost: it is made anew.
      await disk.unlink(path).catch(() => undefined);
      if (isUnanswered(error)) await disk.canOpen(parentOf(path));
    }
  }
}

/** A failure leaves nothing behind, as far as that can be helped: nobody but us, and who sweeps after us, ever comes upon it. */
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

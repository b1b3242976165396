// A log whose segments are all gone, and the head with them, looks like one that was just made: appends would begin with position 1 again. Indexes tell the two apart.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { isIndexName } from "../find/index-file.ts";
import { listSegments } from "./segment.ts";

/** The path of an index, if there is one and no segment. Only on a local disk, where a listing is what is there. */
export async function findOrphanedIndex(disk: Disk, directory: string): Promise<string | undefined> {
  const index = (await namesIn(disk, `${directory}/index`)).find(isIndexName);
  if (index === undefined) return undefined;
  // After the indexes: a segment is there before anybody makes one of it.
  const segments = await listSegments(disk, directory);
  return segments.length === 0 ? `${directory}/index/${index}` : undefined;
}

/** For a log that reads as empty. CORRUPT. */
export async function mustBeNew(disk: Disk, directory: string): Promise<void> {
  const index = await findOrphanedIndex(disk, directory);
  if (index === undefined) return;
  const path = `${directory}/segments`;
  const message = `${path} has no segments, and ${index} was made of some: they are gone, and the head too. Restore both from a backup. If the log is to begin anew, remove the whole directory.`;
  throw holdfastError("CORRUPT", message, { path });
}

async function namesIn(disk: Disk, directory: string): Promise<string[]> {
  try {
    return await disk.list(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

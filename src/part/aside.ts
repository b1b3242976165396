// Moving files that a part does not need into its `aside/`, where a person can look at them.
// Nothing is deleted.
import { ensureDirectory, parentOf, syncNames } from "../durable/publish/directory.ts";
import { moveOnce } from "../durable/publish/publish.ts";
import type { Disk } from "../ports/disk.ts";

export interface AsidePlace {
  readonly disk: Disk;
  /** Of the part. */
  readonly directory: string;
  newId(): string;
}

/**
 * Moves `path`, a file or a directory, under a new name. False when another process has moved it.
 */
export async function moveAside(place: AsidePlace, path: string): Promise<boolean> {
  const { disk, directory } = place;
  const aside = `${directory}/aside`;
  await ensureDirectory(disk, aside);
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (!(await moveOnce(disk, path, `${aside}/${name}.${place.newId()}`))) return false;
  // The new name first: after a power cut the file may have both names, never none.
  await syncNames(disk, aside);
  await syncNames(disk, parentOf(path));
  return true;
}

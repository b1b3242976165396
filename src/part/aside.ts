// Moves files that a part does not need into its `aside/`, where a person can inspect them. Nothing
// is deleted.
import { ensureDirectory, parentOf, syncNames } from "../durable/publish/directory.ts";
import { linkInto } from "../durable/publish/foreign-file.ts";
import { moveOnce } from "../durable/publish/publish.ts";
import type { Disk } from "../ports/disk.ts";

/** The part whose `aside/` gets the files. */
export interface AsideDirectory {
  readonly disk: Disk;
  /** The directory of the part. */
  readonly directory: string;
  newId(): string;
}

/** Links `path`, a file, to a second name there, so that another file can replace it in one step. */
export async function linkAside(to: AsideDirectory, path: string): Promise<void> {
  const { disk, directory } = to;
  const aside = `${directory}/aside`;
  await ensureDirectory(disk, aside);
  await linkInto(disk, path, nameIn(aside, path, to));
}

/** Moves `path`, a file or a directory, to a new name. False if another process moved it. */
export async function moveAside(to: AsideDirectory, path: string): Promise<boolean> {
  const { disk, directory } = to;
  const aside = `${directory}/aside`;
  await ensureDirectory(disk, aside);
  if (!(await moveOnce(disk, path, nameIn(aside, path, to)))) return false;
  // Sync the new name first: after a power cut the file may have both names, never none.
  await syncNames(disk, aside);
  await syncNames(disk, parentOf(path));
  return true;
}

function nameIn(directory: string, path: string, to: AsideDirectory): string {
  return `${directory}/${path.slice(path.lastIndexOf("/") + 1)}.${to.newId()}`;
}

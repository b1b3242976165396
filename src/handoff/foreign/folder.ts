// A folder of other programs: where it is, on which disk, and where a process keeps what it has claimed there.
import { holdfastError } from "../../errors.ts";
import { isLink } from "../../durable/publish/directory.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import type { Box } from "../box/box.ts";
import { findBox } from "../box/box-record.ts";

/** Makes a path absolute, and gives the disk that it is on. */
export type OpenFolder = (directory: string) => Promise<{ readonly path: string; readonly disk: Disk }>;

export interface ForeignFolder {
  readonly path: string;
  readonly disk: Disk;
  /**
   * In it a directory for each holder, in that one for each claim. In the box, if that is on the same file system; in
   * the folder otherwise: a claim is a rename, which works only within one.
   */
  readonly claims: string;
  readonly isInBox: boolean;
}

const hidden = ".holdfast-adopting";

/** INVALID_PATH when there is no such folder, or when it is a part of the box. */
export async function openForeignFolder(box: Box, directory: string, open: OpenFolder): Promise<ForeignFolder> {
  const { path: given, disk } = await open(directory);
  const found = await getFolderStat(disk, given);
  const path = await disk.realPath(given);
  const own = box.layout.directory;
  if (path === own || path.startsWith(`${own}/`)) throw invalid(path, `it is a part of the box ${own}.`);
  if (found.device === (await box.disk.stat(own)).device)
    return { path, disk: box.disk, claims: `${own}/adopting`, isInBox: true };
  const record = await findBox(box.disk, own);
  return { path, disk, claims: `${path}/${hidden}/${record?.id ?? box.ground.id}`, isInBox: false };
}

/** INVALID_PATH when there is no such folder. */
export async function getFolderStat(disk: Disk, path: string): Promise<FileStat> {
  const found = await disk.findStat(path);
  if (found === undefined) throw invalid(path, "it is not there. Is the share mounted?");
  if (found.kind !== "directory") throw invalid(path, "it is not a directory.");
  return found;
}

/** Where claims from all folders on the file system of the box are kept: the folder is found by its path in each claim. */
export function claimsInBox(box: Box): Pick<ForeignFolder, "disk" | "claims" | "isInBox"> {
  return { disk: box.disk, claims: `${box.layout.directory}/adopting`, isInBox: true };
}

/** The names of real files, sorted; what is neither a file nor listed any more is left out. */
export async function* filesOf(
  { disk, path }: ForeignFolder,
  isWanted: (name: string) => boolean,
): AsyncGenerator<{ readonly name: string; readonly stat: FileStat }> {
  for (const name of (await disk.list(path)).filter(isWanted).sort()) {
    const stat = await disk.findStat(`${path}/${name}`);
    // Behind a symbolic link lies what belongs to another place.
    if (stat?.kind === "file" && !(await isLink(disk, `${path}/${name}`))) yield { name, stat };
  }
}

function invalid(path: string, why: string): Error {
  return holdfastError("INVALID_PATH", `The folder ${path} cannot be used: ${why}`, { path });
}

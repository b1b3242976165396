// A folder of other programs: its path, its disk, and the directory for claims on its files.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { isLink } from "../../durable/publish/directory.ts";
import { diskError } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import type { Box } from "../box/box.ts";
import { findBox } from "../box/box-record.ts";
import { isBeyondEntry } from "./problems.ts";

/** Makes a path absolute and returns its disk. */
export type OpenFolder = (directory: string) => Promise<{ readonly path: string; readonly disk: Disk }>;

export interface ForeignFolder {
  readonly path: string;
  readonly disk: Disk;
  /**
   * The directory for claims, with one directory per holder and in it one per claim. It is in the
   * box if box and folder are on the same file system, otherwise in the folder: a claim is a
   * rename, which works only within one file system.
   */
  readonly claims: string;
  readonly isInBox: boolean;
}

const hidden = ".holdfast-adopting";

/** Throws INVALID_PATH if the folder does not exist or is inside the box. */
export async function openForeignFolder(box: Box, directory: string, open: OpenFolder): Promise<ForeignFolder> {
  const { path: given, disk } = await open(directory);
  const found = await getFolderStat(disk, given);
  const path = await disk.realPath(given);
  const own = box.layout.directory;
  if (path === own || path.startsWith(`${own}/`)) throw invalid(path, `it is part of the box ${own}.`);
  if (found.device === (await box.disk.stat(own)).device)
    return { path, disk: box.disk, claims: `${own}/adopting`, isInBox: true };
  const record = await findBox(box.disk, own);
  return { path, disk, claims: `${path}/${hidden}/${record?.id ?? box.ground.id}`, isInBox: false };
}

/** Throws INVALID_PATH if there is no such folder. */
export async function getFolderStat(disk: Disk, path: string): Promise<FileStat> {
  const found = await disk.findStat(path);
  if (found === undefined)
    throw invalid(path, "it does not exist. Is the share mounted?", diskError("ENOENT", "stat", path));
  if (found.kind !== "directory") throw invalid(path, "it is not a directory.");
  return found;
}

/** The directory for claims from all folders on the box's file system. Each claim records the path of its folder. */
export function claimsInBox(box: Box): Pick<ForeignFolder, "disk" | "claims" | "isInBox"> {
  return { disk: box.disk, claims: `${box.layout.directory}/adopting`, isInBox: true };
}

/** An entry of a folder: a file, or something that cannot be adopted. */
export type FolderEntry =
  | { readonly name: string; readonly stat: FileStat; readonly why?: undefined }
  | { readonly name: string; readonly stat?: undefined; readonly why: string; readonly isDirectory: boolean };

/** Yields the entries with these names, sorted. Skips those that are gone. */
export async function* entriesOf(
  folder: ForeignFolder,
  isWanted: (name: string) => boolean,
): AsyncGenerator<FolderEntry> {
  for (const name of (await folder.disk.list(folder.path)).filter(isWanted).sort()) {
    const entry = await findEntry(folder, name);
    if (entry !== undefined) yield entry;
  }
}

/** Returns undefined if the entry does not exist. */
export async function findEntry({ disk, path }: ForeignFolder, name: string): Promise<FolderEntry | undefined> {
  const at = `${path}/${name}`;
  try {
    // Links are not followed: the target belongs to another directory.
    if (await isLink(disk, at)) return { name, why: "it is a symbolic link", isDirectory: false };
    const stat = await disk.findStat(at);
    if (stat?.kind === "file") return { name, stat };
    if (stat?.kind === "directory") return { name, why: "it is a directory", isDirectory: true };
    if (stat !== undefined) return { name, why: "it is a FIFO, a socket or a device", isDirectory: false };
    // The entry is listed but cannot be found: its name has bytes that are not UTF-8, which the
    // listing replaced.
    return name.includes("\uFFFD") ? { name, why: "its name is not UTF-8", isDirectory: false } : undefined;
  } catch (error) {
    if (!isHoldfastError(error) || isBeyondEntry(error)) throw error;
    return { name, why: error.message, isDirectory: false };
  }
}

function invalid(path: string, why: string, cause?: unknown): Error {
  return holdfastError("INVALID_PATH", `The folder ${path} cannot be used: ${why}`, { path }, cause);
}

// Entries of a tree that no operation can use: special files, dangling links, names that are not
// valid in a path. Each is skipped and reported, and affects nothing else.
import { isLink } from "../../durable/publish/directory.ts";
import { cleanPath, pathLengthMax } from "../../format/path-key.ts";
import { findUnportable } from "../../format/name.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { Tree } from "./tree.ts";

/** Why the entry cannot be used, as a sentence. */
export type UnusableReason = string;

const whyOf: Readonly<Record<string, UnusableReason>> = {
  ENAMETOOLONG: "Its path, or what its link says, is too long for this file system.",
  ELOOP: "Its symbolic links lead in a circle.",
  EACCES: "This user may not read it.",
  EPERM: "This user may not read it.",
  ENXIO: "It is neither a file nor a directory.",
  ESPIPE: "It is neither a file nor a directory.",
};

/** Returns why the disk refuses this entry; undefined for a failure that may concern others too. */
export function findUnusable(error: unknown): UnusableReason | undefined {
  for (const [errno, why] of Object.entries(whyOf)) if (hasErrno(error, errno)) return why;
  return undefined;
}

/**
 * Returns the file or directory at `path`, which a listing returned, or why it is odd; undefined
 * for nothing, and for a link.
 */
export async function inspect(tree: Tree, path: string): Promise<FileStat | UnusableReason | undefined> {
  const absolute = tree.pathOf(path);
  try {
    const why = findUnusableName(path, tree);
    if (why !== undefined) return why;
    if (await isLink(tree.disk, absolute)) return undefined;
    const stat = await tree.disk.findStat(absolute);
    // Node uses the replacement character if a name has bytes that are not UTF-8. No call accepts
    // such a name.
    if (stat === undefined)
      return path.includes("\ufffd") ? "Its name has bytes that are not UTF-8. Rename it." : undefined;
    return stat.kind === "other" ? "It is neither a file nor a directory." : stat;
  } catch (error) {
    const why = findUnusable(error);
    if (why === undefined) throw error;
    return why;
  }
}

/** Returns why a link at `path` can never be followed; undefined if it leads into the tree, or if it is not a link. */
export async function inspectLink(tree: Tree, path: string): Promise<UnusableReason | undefined> {
  const { disk, root } = tree;
  try {
    if (!(await isLink(disk, tree.pathOf(path)))) return undefined;
    const [target, realRoot] = [await disk.realPath(tree.pathOf(path)), await disk.realPath(root)];
    if (target === realRoot || target.startsWith(`${realRoot}/`)) return undefined;
    return `It is a symbolic link that leads out of the tree, to ${target}.`;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return "It is a dangling symbolic link.";
    const why = findUnusable(error);
    if (why === undefined) throw error;
    return why;
  }
}

/**
 * Returns why no path of Holdfast can have this name; undefined if one can. Other programs may make
 * such names.
 */
export function findUnusableName(
  path: string,
  { refusesUnportable }: Pick<Tree, "refusesUnportable">,
): UnusableReason | undefined {
  if (path.length > pathLengthMax) return whyOf["ENAMETOOLONG"];
  try {
    if (cleanPath(path) === path) {
      const fault = refusesUnportable ? findUnportable(path) : undefined;
      return fault && `${JSON.stringify(fault.name)} is not valid everywhere: ${fault.why}. Rename it.`;
    }
  } catch {
    return "Its name cannot be part of a path. Rename it.";
  }
  return "Its name has a backslash, which separates names in a path. Rename it.";
}

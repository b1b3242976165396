// Reads what is at a path of the tree now, bypassing the caches of a network mount, for the index
// side.
import { parentOf } from "../../durable/publish/directory.ts";
import { findLinked } from "../../durable/publish/publish.ts";
import { discard } from "../../durable/publish/staging.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { stampOf, type Stamps } from "../tree/stamps.ts";
import type { Tree } from "../tree/tree.ts";

/** Larger files are not indexed. */
export const contentBytesMax: number = 256 * 1024 * 1024;
const readingsMax = 5;
/** Errors that mean: no file, something else, or only a link. */
const noFile = ["ENOENT", "ENOTDIR", "EISDIR", "ENXIO", "ELOOP", "ENAMETOOLONG"];

export interface FoundContent {
  readonly stamp: string;
  /** Absent for a file that is too large. */
  readonly bytes?: Uint8Array;
}

/** Returns the content of a file; undefined if there is none. */
export async function findContent(tree: Tree, stamps: Stamps, path: string): Promise<FoundContent | undefined> {
  for (let reading = 1; ; reading++) {
    try {
      if ((await tree.findEntry(path))?.kind !== "file") return undefined;
      const bytes = await tree.disk.readFile(tree.pathOf(path), contentBytesMax);
      return { stamp: stampOf(bytes), bytes };
    } catch (error) {
      if (hasErrno(error, "EFBIG")) return { stamp: (await stamps.get(tree.pathOf(path))).stamp };
      if (hasErrno(error, ...noFile)) return undefined;
      if (!hasErrno(error, "ESTALE") || reading >= readingsMax) throw error;
    }
  }
}

/**
 * Returns the stamp of the file at `path`; undefined if there is none, or behind a symbolic link.
 * On a share it links the file and reads the second name: an open may still succeed for a while
 * after another machine removed the file.
 */
export async function findStamp(tree: Tree, stamps: Stamps, path: string): Promise<string | undefined> {
  const { disk } = tree;
  const file = tree.pathOf(path);
  try {
    // The target of a link has a name of its own, or lies outside the tree.
    if (await disk.hasLink(tree.root, path)) return undefined;
    if (disk.volume.kind === "local") return (await stamps.get(file)).stamp;
    const { staging } = tree.ground;
    // Opened first, so that the client looks the name up again.
    await disk.look(parentOf(file));
    const temp = await findLinked(staging, file);
    if (temp === undefined) return undefined;
    try {
      return (await stamps.get(temp)).stamp;
    } finally {
      await discard(staging, temp);
    }
  } catch (error) {
    if (hasErrno(error, ...noFile, "ESTALE", "EPERM")) return undefined;
    throw error;
  }
}

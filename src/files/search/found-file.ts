// What is at a path of the tree now, as the index side needs it: not from a cache of a network mount.
import { parentOf } from "../../durable/publish/directory.ts";
import { findLinked } from "../../durable/publish/publish.ts";
import { discard } from "../../durable/publish/staging.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { stampOf, type Stamps } from "../tree/stamps.ts";
import type { TreePlace } from "../tree/tree-place.ts";

/** Larger files are not indexed. */
export const contentBytesMax: number = 256 * 1024 * 1024;
const readingsMax = 5;

export interface FoundContent {
  readonly stamp: string;
  /** Absent for a file that is too large. */
  readonly bytes?: Uint8Array;
}

/** The content of a file; undefined when there is none. */
export async function findContent(place: TreePlace, stamps: Stamps, path: string): Promise<FoundContent | undefined> {
  for (let reading = 1; ; reading++) {
    try {
      if ((await place.findLook(path))?.kind !== "file") return undefined;
      const bytes = await place.disk.readFile(place.pathOf(path), contentBytesMax);
      return { stamp: stampOf(bytes), bytes };
    } catch (error) {
      if (hasErrno(error, "EFBIG")) return { stamp: (await stamps.get(place.pathOf(path))).stamp };
      if (hasErrno(error, "ENOENT", "ENOTDIR", "EISDIR")) return undefined;
      if (!hasErrno(error, "ESTALE") || reading >= readingsMax) throw error;
    }
  }
}

/**
 * The stamp of the file at `path`; undefined when there is none. On a share by a link, and by reading that second name:
 * an open may be answered for a while after another machine has removed the file.
 */
export async function findStamp(place: TreePlace, stamps: Stamps, path: string): Promise<string | undefined> {
  const { disk } = place;
  const file = place.pathOf(path);
  try {
    if (disk.volume.kind === "local") return (await stamps.get(file)).stamp;
    const { staging } = place.ground;
    // Opened first: the client then looks the name up anew.
    await disk.look(parentOf(file));
    const temp = await findLinked(staging, file);
    if (temp === undefined) return undefined;
    try {
      return (await stamps.get(temp)).stamp;
    } finally {
      await discard(staging, temp);
    }
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE", "EISDIR", "EPERM")) return undefined;
    throw error;
  }
}

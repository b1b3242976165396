// Reading a tree, without a lock: a file is seen whole, as it was before a change or after it.
import type { Cancel } from "../../common.ts";
import { isLink } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { FileInfo, ListOptions } from "../model/file-tree.ts";
import type { IndexQueue } from "../model/index-queue.ts";
import type { Stamps } from "./stamps.ts";
import type { TreePlace } from "./tree-place.ts";

/** More does not fit into one buffer everywhere. */
const readBytesMax = 2 ** 31 - 1;
/** On a share a file that is replaced while it is read goes away under the reader. */
const readingsMax = 5;

export class TreeReader {
  readonly #place: TreePlace;
  readonly #stamps: Stamps;
  readonly #queue: Pick<IndexQueue, "isIndexed">;

  constructor(place: TreePlace, stamps: Stamps, queue: Pick<IndexQueue, "isIndexed">) {
    this.#place = place;
    this.#stamps = stamps;
    this.#queue = queue;
  }

  async read(path: string, { signal }: Cancel = {}): Promise<Uint8Array> {
    signal?.throwIfAborted();
    const { path: located } = await this.#place.locate(path);
    const bytes = await this.findBytes(located);
    signal?.throwIfAborted();
    if (bytes === undefined) throw noSuchFile(path);
    return bytes;
  }

  /** The content at a path that `locate` gave; undefined when there is none. NO_SUCH_FILE for a directory. */
  async findBytes(located: string): Promise<Uint8Array | undefined> {
    for (let reading = 1; ; reading++) {
      try {
        return await this.#place.disk.readFile(this.#place.pathOf(located), readBytesMax);
      } catch (error) {
        if (hasErrno(error, "ESTALE") && reading < readingsMax) continue;
        if (hasErrno(error, "ENOENT", "ENOTDIR")) {
          // The client of a share may remember that nothing was there.
          const mayBeOld = this.#place.disk.volume.kind !== "local" && reading < readingsMax;
          if (mayBeOld && (await this.#place.findLook(located)) !== undefined) continue;
          return undefined;
        }
        if (hasErrno(error, "EISDIR", "ENXIO")) throw noSuchFile(located, "it is not a file", error);
        if (hasErrno(error, "EFBIG")) throw await this.#tooLarge(located);
        throw error;
      }
    }
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const { path: located } = await this.#place.locate(path);
    return await this.describe(located);
  }

  /** What is at a path that `locate` gave. */
  async describe(located: string): Promise<FileInfo | undefined> {
    const path = this.#place.pathOf(located);
    const found = await this.#place.findLook(located);
    if (found === undefined || found.kind === "other") return undefined;
    if (found.kind === "directory") return infoOf(located, found);
    try {
      const { stamp, stat } = await this.#stamps.get(path);
      return { ...infoOf(located, stat), indexed: await this.#queue.isIndexed(located, stamp), stamp };
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE", "EISDIR")) return undefined;
      throw error;
    }
  }

  async *list(under: string = "", { deep = false, signal }: ListOptions = {}): AsyncGenerator<FileInfo> {
    signal?.throwIfAborted();
    const { path: located } = await this.#place.locate(under);
    const found = await this.#place.findLook(located);
    if (found?.kind !== "directory") throw noSuchFile(under, found && "it is not a directory");
    yield* this.#listDirectory(located, { deep, signal });
  }

  async *#listDirectory(
    directory: string,
    { deep, signal, isTop = true }: ListOptions & { readonly isTop?: boolean },
  ): AsyncGenerator<FileInfo> {
    const { disk } = this.#place;
    for (const name of (await this.#namesIn(directory, isTop)).sort()) {
      signal?.throwIfAborted();
      if (!this.#place.isShown(name)) continue;
      const located = directory === "" ? name : `${directory}/${name}`;
      const path = this.#place.pathOf(located);
      // What a link leads to is in the tree under its own name, or does not belong to it. One that leads in a circle has
      // no stat.
      if (await isLink(disk, path)) continue;
      const stat = await disk.findStat(path);
      if (stat === undefined || stat.kind === "other") continue;
      yield await this.#listed(located, stat);
      if (deep && stat.kind === "directory") yield* this.#listDirectory(located, { deep, signal, isTop: false });
    }
  }

  async #listed(located: string, stat: FileStat): Promise<FileInfo> {
    const info = infoOf(located, stat);
    const stamp = info.directory ? undefined : this.#stamps.find(stat);
    if (stamp === undefined) return info;
    return { ...info, indexed: await this.#queue.isIndexed(located, stamp), stamp };
  }

  /**
   * A directory that is removed meanwhile has nothing in it. One that this user may not read is listed, and what is in
   * it is not: NO_PERMISSION only for the one that was asked for.
   */
  async #namesIn(directory: string, isTop: boolean): Promise<string[]> {
    try {
      return await this.#place.disk.list(this.#place.pathOf(directory));
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE") || (!isTop && hasErrno(error, "EACCES"))) return [];
      throw error;
    }
  }

  async #tooLarge(path: string): Promise<Error> {
    const actual = (await this.#place.findLook(path))?.size ?? 0;
    const message = `${path} has ${actual} bytes, and read() gives at most ${readBytesMax}. Open the file itself: it is a plain file below ${this.#place.root}.`;
    return holdfastError("TOO_LARGE", message, { limit: readBytesMax, actual });
  }
}

function infoOf(path: string, { kind, size, mtimeMs }: FileStat): FileInfo {
  const directory = kind === "directory";
  return { path, directory, size: directory ? 0 : size, modifiedAt: new Date(mtimeMs), indexed: false };
}

export function noSuchFile(path: string, why: string = "nothing is there", cause?: unknown): Error {
  const shown = path === "" ? "The root" : path;
  return holdfastError("NO_SUCH_FILE", `${shown} cannot be used: ${why}.`, { path }, cause);
}

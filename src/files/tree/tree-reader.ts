// Reads a tree without a lock. A reader sees each file whole, as it was before or after a change.
import type { Cancel } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { FileInfo, ListOptions } from "../model/file-tree.ts";
import type { IndexQueue } from "../model/index-queue.ts";
import { findUnusable, inspect, inspectLink } from "./unusable-entry.ts";
import type { Stamps } from "./stamps.ts";
import type { Tree } from "./tree.ts";

/** Larger files do not fit into one buffer on every platform. */
const readBytesMax = 2 ** 31 - 1;
/** On a share a file that is replaced while it is read disappears under the reader. */
const readingsMax = 5;

export class TreeReader {
  readonly #tree: Tree;
  readonly #stamps: Stamps;
  readonly #queue: Pick<IndexQueue, "isIndexed"> | undefined;

  constructor(tree: Tree, stamps: Stamps, queue?: Pick<IndexQueue, "isIndexed">) {
    this.#tree = tree;
    this.#stamps = stamps;
    this.#queue = queue;
  }

  async read(path: string, { signal }: Cancel = {}): Promise<Uint8Array> {
    signal?.throwIfAborted();
    const { path: located } = await this.#tree.locate(path);
    const bytes = await this.findBytes(located);
    signal?.throwIfAborted();
    if (bytes === undefined) throw noSuchFile(path);
    return bytes;
  }

  /**
   * Returns the content at a path that `locate` returned; undefined if there is none. Throws
   * NO_SUCH_FILE for a directory.
   */
  async findBytes(located: string): Promise<Uint8Array | undefined> {
    for (let reading = 1; ; reading++) {
      try {
        return await this.#tree.disk.readFile(this.#tree.pathOf(located), readBytesMax);
      } catch (error) {
        if (hasErrno(error, "ESTALE") && reading < readingsMax) continue;
        if (hasErrno(error, "ENOENT", "ENOTDIR")) {
          // The client of a share may have cached the absence.
          const mayBeOld = this.#tree.disk.volume.kind !== "local" && reading < readingsMax;
          if (mayBeOld && (await this.#tree.findLook(located)) !== undefined) continue;
          return undefined;
        }
        if (hasErrno(error, "EISDIR", "ENXIO")) throw noSuchFile(located, "it is not a file", error);
        if (hasErrno(error, "EFBIG")) throw await this.#tooLarge(located);
        throw error;
      }
    }
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const { path: located } = await this.#tree.locate(path);
    return await this.describe(located);
  }

  /** Describes what is at a path that `locate` returned. */
  async describe(located: string): Promise<FileInfo | undefined> {
    const path = this.#tree.pathOf(located);
    const found = await this.#tree.findLook(located);
    if (found === undefined || found.kind === "other") return undefined;
    if (found.kind === "directory") return infoOf(located, found);
    try {
      const { stamp, stat } = await this.#stamps.get(path);
      return { ...infoOf(located, stat), indexed: await this.#isIndexed(located, stamp), stamp };
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE", "EISDIR", "ENXIO")) return undefined;
      throw error;
    }
  }

  async *list(under: string = "", options: ListOptions = {}): AsyncGenerator<FileInfo> {
    const { signal } = options;
    signal?.throwIfAborted();
    const { path: located } = await this.#tree.locate(under);
    const found = await this.#tree.findLook(located);
    if (found?.kind !== "directory") throw noSuchFile(under, found && "it is not a directory");
    yield* this.#listDirectory(located, await this.#namesIn(located), options);
  }

  async *#listDirectory(directory: string, names: readonly string[], options: ListOptions): AsyncGenerator<FileInfo> {
    const { deep = false, signal, onProblem } = options;
    for (const name of names) {
      signal?.throwIfAborted();
      if (!this.#tree.isShown(name)) continue;
      const path = directory === "" ? name : `${directory}/${name}`;
      const found = await inspect(this.#tree, path);
      if (found === undefined || typeof found === "string") {
        // The target of a link has its own name in the tree, or does not belong to it.
        const what = found ?? (onProblem && (await inspectLink(this.#tree, path)));
        if (what !== undefined) onProblem?.({ path, what });
        continue;
      }
      yield await this.#listed(path, found);
      if (deep && found.kind === "directory")
        yield* this.#listDirectory(path, await this.#namesBelow(path, options), options);
    }
  }

  async #listed(located: string, stat: FileStat): Promise<FileInfo> {
    const info = infoOf(located, stat);
    const stamp = info.directory ? undefined : this.#stamps.find(stat);
    if (stamp === undefined) return info;
    return { ...info, indexed: await this.#isIndexed(located, stamp), stamp };
  }

  async #isIndexed(located: string, stamp: string): Promise<boolean> {
    return (await this.#queue?.isIndexed(located, stamp)) ?? false;
  }

  /** Returns the names in order; empty for a directory that is removed meanwhile. */
  async #namesIn(directory: string): Promise<string[]> {
    try {
      return (await this.#tree.disk.list(this.#tree.pathOf(directory))).sort();
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return [];
      throw error;
    }
  }

  /**
   * Lists a directory. An unreadable one is listed without its content; only for the requested
   * directory itself is that an error.
   */
  async #namesBelow(directory: string, { onProblem }: ListOptions): Promise<string[]> {
    try {
      return await this.#namesIn(directory);
    } catch (error) {
      const what = isHoldfastError(error, "TOO_LARGE") ? error.message : findUnusable(error);
      if (what === undefined) throw error;
      onProblem?.({ path: directory, what });
      return [];
    }
  }

  async #tooLarge(path: string): Promise<Error> {
    const actual = (await this.#tree.findLook(path))?.size ?? 0;
    const message = `${path} has ${actual} bytes, and read() returns at most ${readBytesMax}. Open the file itself: it is a plain file below ${this.#tree.root}.`;
    return holdfastError("TOO_LARGE", message, { limit: readBytesMax, actual });
  }
}

function infoOf(path: string, { kind, size, mtimeMs }: FileStat): FileInfo {
  const directory = kind === "directory";
  return { path, directory, size: directory ? 0 : size, modifiedAt: new Date(mtimeMs), indexed: false };
}

export function noSuchFile(path: string, why: string = "it does not exist", cause?: unknown): Error {
  const shown = path === "" ? "The root" : path;
  return holdfastError("NO_SUCH_FILE", `${shown} cannot be used: ${why}.`, { path }, cause);
}

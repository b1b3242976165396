// Tells a bad file from a bad disk. Both answer a read with EIO. A file is judged unreadable only if it still
// fails after the disk has stored and synced another file.
import { holdfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { errnoOf, hasErrno, isUnwritable } from "../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { discard, stage, type Staging } from "../../durable/publish/staging.ts";

/** The answers of a medium that cannot read a block or an inode, on Linux, macOS and Windows. */
const mediumErrors = ["EIO", "EUCLEAN", "EBADMSG", "EILSEQ", "ENODATA"];

/** The pauses before the further reads. A server that has just come back may fail some requests first. */
const pausesMs = { local: [10, 30, 90], other: [250, 1_000, 4_000] };

/** For this long, one further failure is enough for a path that was judged unreadable. */
const believedMs = 60_000;
const judgedMax = 1_000;

/**
 * Returns `disk`, except that a file that cannot be read, although the disk works, fails with
 * CORRUPT instead of IO_ERROR. If the disk does not work either, the first failure is thrown.
 */
export function provenReads(disk: Disk, clock: Clock, staging: Staging): Disk {
  const judged = new Map<string, number>();
  const pauses = disk.volume.kind === "local" ? pausesMs.local : pausesMs.other;

  const prove = async <T>(path: string, first: unknown, read: () => Promise<T>): Promise<T> => {
    const isKnown = (judged.get(path) ?? -Infinity) > clock.monotonicMs();
    for (const pauseMs of isKnown ? pauses.slice(0, 1) : pauses) {
      await mustWork(staging, first);
      await clock.sleep(pauseMs);
      try {
        return await read();
      } catch (error) {
        if (!hasErrno(error, ...mediumErrors)) throw error;
      }
    }
    await mustWork(staging, first);
    if (judged.size >= judgedMax) judged.clear();
    judged.set(path, clock.monotonicMs() + believedMs);
    const message = `${path} is damaged: the disk stores and syncs other files, and cannot read this one (${errnoOf(first)}). Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path }, first);
  };

  const proven = async <T>(path: string, read: () => Promise<T>): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      if (!hasErrno(error, ...mediumErrors)) throw error;
      return await prove(path, error, read);
    }
  };

  const reads: Pick<Disk, "readFile" | "canOpen" | "stat" | "findStat" | "open"> = {
    canOpen: async (path) => await proven(path, () => disk.canOpen(path)),
    stat: async (path) => await proven(path, () => disk.stat(path)),
    findStat: async (path) => await proven(path, () => disk.findStat(path)),
    readFile: async (path, bytesMax) => await proven(path, () => disk.readFile(path, bytesMax)),
    open: async (path, mode, options) => {
      if (mode !== "read") return await disk.open(path, mode, options);
      const file = await proven(path, () => disk.open(path, mode, options));
      const read: DiskFile["read"] = (offset, length) => proven(path, () => file.read(offset, length));
      return withMethods(file, { read });
    },
  };
  return withMethods(disk, reads);
}

/** Throws `first` if the disk cannot store and sync a file now. "Full" and "not permitted" are answers of a disk that works. */
async function mustWork(staging: Staging, first: unknown): Promise<void> {
  try {
    await discard(staging, await stage(staging, new Uint8Array(1), { sync: true }));
  } catch (error) {
    if (!isUnwritable(error)) throw first;
  }
}

/** Returns `target` with some methods replaced. */
function withMethods<T extends object>(target: T, methods: Partial<T>): T {
  const known = new Map<PropertyKey, unknown>(Object.entries(methods));
  return new Proxy(target, {
    get: (_, name): unknown => {
      const found = known.get(name);
      if (found !== undefined) return found;
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      const bound: unknown = value.bind(target);
      known.set(name, bound);
      return bound;
    },
  });
}

// The real disk: implements each operation of the contract with calls of Node.
import type { BigIntStats } from "node:fs";
import { dirname } from "node:path";
import { holdfastError } from "../../../errors.ts";
import { diskError, findIfThere } from "../../disk-error.ts";
import type { CreateFileOptions, Disk, DiskFile, FileStat, OpenFileOptions, Volume } from "../../disk.ts";
import { fitDirectory, mayRename } from "../directory-rights.ts";
import { DiskSyncs } from "./disk-syncs.ts";
import { findErrno, toDiskError } from "./errno.ts";
import type { FileCalls } from "./file-calls.ts";
import { fileStatOf, NodeFile, readUpTo, writeAll } from "./file.ts";
import { findDueTurn } from "./loop-turn.ts";
import { callsFor } from "./volume-calls.ts";
import { findVolume } from "./volume.ts";

/** Returns the disk that `root` (absolute) is on. `root` need not exist: then its nearest existing ancestor decides. */
export async function openNodeDisk(root: string): Promise<Disk> {
  const volume = await findVolume(root);
  return new NodeDisk(volume, callsFor(volume));
}

const namesMax = 1_000_000;
/**
 * How often a name is looked up again if its file disappears between an open and the next call,
 * each time a different file.
 */
const staleTriesMax = 8;
const flagsOf = { read: "r", write: "r+", create: "wx+" } as const;

/** Exported for tests, which pass calls that fail. */
export class NodeDisk implements Disk {
  readonly volume: Volume;
  readonly #calls: FileCalls;
  readonly #syncs: DiskSyncs;
  readonly #platform: NodeJS.Platform;

  constructor(volume: Volume, calls: FileCalls, platform: NodeJS.Platform = process.platform) {
    this.volume = volume;
    this.#calls = calls;
    this.#syncs = new DiskSyncs(calls);
    this.#platform = platform;
  }

  async createFile(path: string, bytes: Uint8Array, options: CreateFileOptions): Promise<void> {
    const isFitted = options.isForDirectory === true && this.#platform !== "win32";
    await attempt("create", path, async () => {
      const fd = await this.#calls.open(path, "wx", isFitted ? 0o600 : options.mode);
      try {
        await this.#closing(fd, async () => {
          if (isFitted) await fitDirectory(this.#calls, fd, dirname(path));
          await writeAll(this.#calls, fd, 0, bytes);
          if (options.sync) await this.#syncs.run(fd, { what: "all", bytes: bytes.length });
        });
      } catch (error) {
        // This call made the file, because the create was exclusive. If the file cannot be removed,
        // a partial one remains, as after a crash. The caller gets the first error.
        await this.unlink(path).catch(() => undefined);
        throw error;
      }
    });
  }

  async readFile(path: string, bytesMax: number): Promise<Uint8Array> {
    return attempt("read", path, () =>
      this.#withFreshHandle(path, async () => {
        const fd = await this.#calls.open(path, "r");
        return this.#closing(fd, async () => {
          const { kind, size } = fileStatOf(await this.#calls.fstat(fd));
          if (kind === "directory") throw diskError("EISDIR", "read", path);
          if (kind !== "file") throw diskError("ENXIO", "read", path);
          if (size > bytesMax) throw diskError("EFBIG", "read", path);
          // Reads no further than the size right after the open: a file that grows meanwhile cannot
          // make this read endless.
          return readUpTo(this.#calls, fd, 0, size);
        });
      }),
    );
  }

  async canOpen(path: string): Promise<boolean> {
    return attempt("open", path, () => this.#withFreshHandle(path, async () => this.#calls.isThere(path)));
  }

  async open(path: string, mode: "read" | "write" | "create", options: OpenFileOptions = {}): Promise<DiskFile> {
    const isBulk = options.isBulk === true && mode === "read";
    const open = async (): Promise<number> =>
      isBulk ? this.#calls.openBulk(path) : this.#calls.open(path, flagsOf[mode], options.mode);
    const fd = await attempt("open", path, () => (mode === "create" ? open() : this.#withFreshHandle(path, open)));
    return new NodeFile(path, fd, this.#calls, this.#syncs);
  }

  async link(from: string, to: string): Promise<void> {
    await attempt("link", to, async () => this.#calls.link(from, to));
  }

  async rename(from: string, to: string): Promise<void> {
    await attempt("rename", to, async () => this.#calls.rename(from, to));
  }

  async unlink(path: string): Promise<void> {
    await attempt("unlink", path, async () => this.#calls.unlink(path));
  }

  async mkdir(path: string): Promise<void> {
    await attempt("mkdir", path, async () => this.#calls.mkdir(path));
  }

  async rmdir(path: string): Promise<void> {
    await attempt("rmdir", path, async () => this.#calls.rmdir(path));
  }

  async list(path: string): Promise<string[]> {
    const names = await this.listSome(path, namesMax + 1);
    if (names.length <= namesMax) return names;
    const message = `list ${path}: more than ${namesMax} names`;
    throw holdfastError("TOO_LARGE", message, { limit: namesMax, actual: namesMax + 1 });
  }

  async listSome(path: string, count: number): Promise<string[]> {
    const list = async (): Promise<string[]> => this.#calls.listSome(path, count);
    return attempt("list", path, () => this.#withFreshHandle(path, list));
  }

  async stat(path: string): Promise<FileStat> {
    const look = async (): Promise<FileStat> => fileStatOf(await this.#calls.stat(path));
    return attempt("stat", path, () => this.#withFreshHandle(path, look));
  }

  async findStat(path: string): Promise<FileStat | undefined> {
    return findIfThere(this.stat(path));
  }

  async look(path: string): Promise<FileStat> {
    const look = async (): Promise<FileStat> => fileStatOf(await this.#calls.look(path));
    return attempt("look at", path, () => this.#withFreshHandle(path, look));
  }

  async mayRename(path: string): Promise<boolean> {
    return this.#platform === "win32" || (await attempt("look at", path, () => mayRename(this.#calls, path)));
  }

  async realPath(path: string): Promise<string> {
    return this.#withSlashes(await attempt("resolve", path, async () => this.#calls.realpath(path)));
  }

  async hasLink(root: string, path: string): Promise<boolean> {
    return attempt("look for links", path, async () => {
      for (let end = path.indexOf("/"); ; end = path.indexOf("/", end + 1)) {
        const kind = await this.#calls.lstat(`${root}/${end < 0 ? path : path.slice(0, end)}`);
        // A missing name cannot be a link.
        if (kind === undefined) return false;
        if (kind.isSymbolicLink()) return true;
        if (end < 0) return false;
      }
    });
  }

  async readLink(path: string): Promise<string> {
    return this.#withSlashes(await attempt("read link", path, async () => this.#calls.readlink(path)));
  }

  async symbolicLink(target: string, path: string): Promise<void> {
    await attempt("link", path, async () => this.#calls.symlink(target, path));
  }

  async syncDirectory(path: string): Promise<string | void> {
    // Windows cannot flush a directory, and NTFS needs no flush: it journals its metadata in order.
    if (this.#platform === "win32") return undefined;
    const sync = async (): Promise<string | void> => {
      const fd = await this.#calls.open(path, "r");
      return await this.#closing(fd, async () => {
        await this.#syncs.run(fd, { what: "all", bytes: 0 });
        // After xfs has shut itself down, syncing a directory succeeds and makes nothing durable.
        // Its `fstat` fails then.
        if (this.volume.kind === "local") return identityOf(await this.#calls.fstat(fd));
      });
    };
    // A stale handle says nothing about the directory that has the name now, and the content of
    // that one must become durable.
    return await attempt("sync", path, () => this.#withFreshHandle(path, sync));
  }

  #withSlashes(path: string): string {
    return this.#platform === "win32" ? path.replaceAll("\\", "/") : path;
  }

  /**
   * Calls `look`, and again if the share reports a stale handle. The client may use a handle of
   * something that another machine removed or replaced, as long as it trusts its cache of the
   * directory (half a minute on NFS). Opening the directory makes the client revalidate it and look
   * the name up again.
   */
  async #withFreshHandle<T>(path: string, look: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await look();
      } catch (error) {
        if (tries >= staleTriesMax || findErrno(error) !== "ESTALE") throw error;
      }
      await this.#calls.close(await this.#calls.open(dirname(path), "r"));
    }
  }

  /** Always closes `fd`. A failed close fails the whole operation: a share reports lost writes there. */
  async #closing<T>(fd: number, action: () => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await action();
    } catch (error) {
      try {
        await this.#calls.close(fd);
      } catch {
        // Ignore this one: the first error matters, and nothing that was written is claimed to exist.
      }
      throw error;
    }
    await this.#calls.close(fd);
    return result;
  }
}

async function attempt<T>(operation: string, path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw toDiskError(error, operation, path);
  } finally {
    const turn = findDueTurn();
    if (turn !== undefined) await turn;
  }
}

/** The inode number alone may be reused. Without a birth time, nothing reliably distinguishes two directories. */
function identityOf({ dev, ino, birthtimeNs }: BigIntStats): string | undefined {
  return birthtimeNs > 0n ? `${dev}-${ino}-${birthtimeNs}` : undefined;
}

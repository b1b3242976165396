// An open file of the real disk.
import type { BigIntStats } from "node:fs";
import { diskError } from "../../disk-error.ts";
import type { DiskFile, FileStat, SyncOptions } from "../../disk.ts";
import { toDiskError } from "./errno.ts";
import { DiskSyncs } from "./disk-syncs.ts";
import type { FileCalls } from "./file-calls.ts";
import { findDueTurn } from "./loop-turn.ts";

export class NodeFile implements DiskFile {
  readonly path: string;
  /** Owned by the thread that opened it. Valid until `close`; afterwards the number may belong to another file. */
  readonly fd: number;
  readonly #calls: FileCalls;
  readonly #syncs: DiskSyncs;
  readonly #users: Set<() => Promise<void>> = new Set();
  readonly #underWay: Set<Promise<unknown>> = new Set();
  #unsyncedBytes = 0;
  #closing: Promise<void> | undefined;

  constructor(path: string, fd: number, calls: FileCalls, syncs: DiskSyncs = new DiskSyncs(calls)) {
    this.path = path;
    this.fd = fd;
    this.#calls = calls;
    this.#syncs = syncs;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    return this.#attempt("read", () => readUpTo(this.#calls, this.fd, offset, length));
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    this.#unsyncedBytes += bytes.length;
    await this.#attempt("write", () => writeAll(this.#calls, this.fd, offset, bytes));
  }

  async sync({ isIdle }: SyncOptions = {}): Promise<void> {
    const bytes = this.#unsyncedBytes;
    this.#unsyncedBytes = 0;
    await this.#attempt("sync", () => this.#syncs.run(this.fd, { what: "data", bytes, isIdle }));
  }

  async stat(): Promise<FileStat> {
    return this.#attempt("stat", async () => fileStatOf(await this.#calls.fstat(this.fd)));
  }

  /**
   * Registers a user of the bare `fd`: `close` calls `end` and waits for it. The returned function
   * removes the registration.
   */
  use(end: () => Promise<void>): () => void {
    this.#users.add(end);
    return () => this.#users.delete(end);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    // Calls in progress, in the pool or in another thread, use the bare number and would hit the
    // next file that gets it.
    await Promise.allSettled([...this.#underWay, ...[...this.#users].map((end) => end())]);
    try {
      await this.#calls.close(this.fd);
    } catch (error) {
      throw toDiskError(error, "close", this.path);
    }
  }

  async #attempt<T>(operation: string, action: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw diskError("EBADF", operation, this.path);
    const result = action();
    this.#underWay.add(result);
    try {
      return await result;
    } catch (error) {
      throw toDiskError(error, operation, this.path);
    } finally {
      this.#underWay.delete(result);
      const turn = findDueTurn();
      if (turn !== undefined) await turn;
    }
  }
}

/** Returns the bytes from `offset` to the end of the file, at most `length`. */
export async function readUpTo(calls: FileCalls, fd: number, offset: number, length: number): Promise<Uint8Array> {
  // Not zero-filled: only bytes that were read are returned.
  const bytes = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
  let done = 0;
  while (done < length) {
    const count = await calls.read(fd, bytes.subarray(done), offset + done);
    if (count === 0) return bytes.slice(0, done);
    done += count;
  }
  return bytes;
}

export async function writeAll(calls: FileCalls, fd: number, offset: number, bytes: Uint8Array): Promise<void> {
  let done = 0;
  while (done < bytes.length) done += await calls.write(fd, bytes.subarray(done), offset + done);
}

export function fileStatOf(stats: BigIntStats): FileStat {
  const kind = stats.isFile() ? "file" : stats.isDirectory() ? "directory" : "other";
  const { dev, ino, size, mtimeNs, ctimeNs } = stats;
  // Windows derives this mode from the read-only flag, so it is omitted.
  const mode = process.platform === "win32" ? {} : { mode: Number(stats.mode) & 0o7777 };
  return {
    kind,
    size: Number(size),
    mtimeMs: Number(mtimeNs) / 1e6,
    ctimeMs: Number(ctimeNs) / 1e6,
    identity: `${dev}:${ino}`,
    device: String(dev),
    ...mode,
  };
}

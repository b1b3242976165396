// An OS lock on a share, or on a volume that may be one: asked for again and again, with a descriptor that lives for one acquisition only.
import { holdfastError } from "../../errors.ts";
import type { Clock } from "../clock.ts";
import type { OsLockFile } from "../os-lock.ts";
import type { Random } from "../random.ts";
import { toDiskError } from "./errno.ts";
import type { FileCalls } from "./file-calls.ts";
import type { NativeLock } from "./native-lock.ts";

export interface PolledLockParts {
  readonly calls: FileCalls;
  readonly clock: Clock;
  readonly random: Random;
  readonly flags: number;
}

export async function openPolledLock(path: string, native: NativeLock, parts: PolledLockParts): Promise<OsLockFile> {
  // Only to make the file, and to fail now when it cannot be opened.
  await closeQuietly(parts.calls, await openForLocking(parts, path));
  return new PolledLockFile(path, native, parts);
}

const pollMsMin = 20;
const pollMsMax = 250;

/**
 * After a broken connection a kept descriptor may be one that the server has forgotten, while its locks look held. So each acquisition opens its own.
 * The native module asks the server in the main thread (it has no other way of asking without waiting); a server that is silent stops it for
 * that long.
 */
class PolledLockFile implements OsLockFile {
  readonly #path: string;
  readonly #native: NativeLock;
  readonly #parts: PolledLockParts;
  #state: "idle" | "waiting" | "held" | "closed" = "idle";
  /** Only while held. */
  #fd: number | undefined;

  constructor(path: string, native: NativeLock, parts: PolledLockParts) {
    this.#path = path;
    this.#native = native;
    this.#parts = parts;
  }

  async tryLock(): Promise<boolean> {
    if (this.#state === "closed") throw this.#closedError();
    return this.#state === "idle" && this.#acquire(async () => false);
  }

  async lock(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (this.#state === "closed") throw this.#closedError();
    if (this.#state !== "idle") throw new TypeError(`${this.#path} is ${this.#state} already, through this OsLockFile`);
    await this.#acquire(async (attempt) => {
      await this.#parts.clock.sleep(this.#pauseMs(attempt), { signal });
      return true;
    });
  }

  async unlock(): Promise<void> {
    if (this.#state !== "held") return;
    this.#state = "idle";
    await this.#closeDescriptor();
  }

  async close(): Promise<void> {
    this.#state = "closed";
    await this.#closeDescriptor();
  }

  /** Asks until the answer is yes, or `again` says no. */
  async #acquire(again: (attempt: number) => Promise<boolean>): Promise<boolean> {
    this.#state = "waiting";
    let fd: number | undefined;
    try {
      fd = await openForLocking(this.#parts, this.#path);
      for (let attempt = 0; ; attempt++) {
        if (this.#isClosed()) throw this.#closedError();
        if (this.#tryNow(fd)) break;
        if (!(await again(attempt))) return false;
      }
      this.#fd = fd;
      fd = undefined;
      this.#state = "held";
      return true;
    } finally {
      if (this.#state === "waiting") this.#state = "idle";
      if (fd !== undefined) await closeQuietly(this.#parts.calls, fd);
    }
  }

  #tryNow(fd: number): boolean {
    try {
      return this.#native.tryLock(fd);
    } catch (error) {
      throw toDiskError(error, "lock", this.#path);
    }
  }

  /** Anywhere between the shortest pause and a bound that doubles: waiters that began together drift apart. */
  #pauseMs(attempt: number): number {
    const boundMs = Math.min(pollMsMax, pollMsMin * 2 ** Math.min(attempt + 1, 10));
    return pollMsMin + this.#parts.random.fraction() * (boundMs - pollMsMin);
  }

  // A function, so that the compiler does not take the state for unchanged across an await.
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  async #closeDescriptor(): Promise<void> {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) await closeQuietly(this.#parts.calls, fd);
  }

  #closedError(): unknown {
    return holdfastError("CLOSED", `${this.#path} is closed`, {});
  }
}

async function openForLocking({ calls, flags }: PolledLockParts, path: string): Promise<number> {
  try {
    return await calls.open(path, flags);
  } catch (error) {
    throw toDiskError(error, "open", path);
  }
}

/** The descriptor, and with it the lock, is gone also when closing fails; nothing was written that could be lost. */
async function closeQuietly(calls: FileCalls, fd: number): Promise<void> {
  try {
    await calls.close(fd);
  } catch {
    // As said above.
  }
}

// Locks between the parts of one process that share a memory disk: nobody else can reach it, so a table in this process is the kernel.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../disk-error.ts";
import type { Disk, DiskFile } from "../disk.ts";
import type { OsLock, OsLockFile } from "../os-lock.ts";

export function createMemoryOsLock(disk: Disk): OsLock {
  const locks = new LockTable();
  return {
    async open(path, { create = true } = {}) {
      const file = await (create ? openOrCreate(disk, path) : disk.open(path, "write"));
      return new MemoryLockFile(path, file, (await file.stat()).identity, locks);
    },
  };
}

async function openOrCreate(disk: Disk, path: string): Promise<DiskFile> {
  try {
    return await disk.open(path, "write");
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
  }
  try {
    return await disk.open(path, "create");
  } catch (error) {
    // Somebody made it meanwhile.
    if (hasErrno(error, "EEXIST")) return await openOrCreate(disk, path);
    throw error;
  }
}

interface Waiter {
  readonly grant: () => void;
}

/**
 * Who holds which lock and who waits for it, first come first served. By the identity of the file and not by its path, as in a kernel: a file that was
 * removed and made again is another lock.
 */
class LockTable {
  readonly #waiters = new Map<string, Waiter[]>();

  tryTake(identity: string): boolean {
    if (this.#waiters.has(identity)) return false;
    this.#waiters.set(identity, []);
    return true;
  }

  /** Only for a lock that is taken. */
  wait(identity: string, waiter: Waiter): void {
    this.#waiters.get(identity)?.push(waiter);
  }

  leave(identity: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(identity) ?? [];
    const index = waiters.indexOf(waiter);
    if (index >= 0) waiters.splice(index, 1);
  }

  /** Hands it to the next in line, without a moment in which it is free. */
  free(identity: string): void {
    const next = this.#waiters.get(identity)?.shift();
    if (next === undefined) this.#waiters.delete(identity);
    else next.grant();
  }
}

class MemoryLockFile implements OsLockFile {
  readonly #path: string;
  readonly #file: DiskFile;
  readonly #identity: string;
  readonly #locks: LockTable;
  #state: "idle" | "waiting" | "held" | "closed" = "idle";
  #cancel: (reason: unknown) => void = () => undefined;

  constructor(path: string, file: DiskFile, identity: string, locks: LockTable) {
    this.#path = path;
    this.#file = file;
    this.#identity = identity;
    this.#locks = locks;
  }

  async tryLock(): Promise<boolean> {
    if (this.#state === "closed") throw this.#closedError();
    return this.#state === "idle" && this.#tryNow();
  }

  async lock(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (this.#state === "closed") throw this.#closedError();
    if (this.#state !== "idle") throw new TypeError(`${this.#path} is ${this.#state} already, through this OsLockFile`);
    if (this.#tryNow()) return;
    const cancel = (): void => this.#cancel(signal?.reason);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await this.#wait();
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  async unlock(): Promise<void> {
    this.#free();
  }

  async close(): Promise<void> {
    this.#cancel(this.#closedError());
    this.#free();
    this.#state = "closed";
    await this.#file.close();
  }

  // In one step with the look at the state, like all that follows: there is no moment in which somebody else could come between.
  #tryNow(): boolean {
    if (!this.#locks.tryTake(this.#identity)) return false;
    this.#state = "held";
    return true;
  }

  #free(): void {
    if (this.#state !== "held") return;
    this.#state = "idle";
    this.#locks.free(this.#identity);
  }

  #wait(): Promise<void> {
    this.#state = "waiting";
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        grant: () => {
          this.#state = "held";
          resolve();
        },
      };
      this.#cancel = (reason) => {
        if (this.#state !== "waiting") return;
        this.#state = "idle";
        this.#locks.leave(this.#identity, waiter);
        reject(reason);
      };
      this.#locks.wait(this.#identity, waiter);
    });
  }

  #closedError(): unknown {
    return holdfastError("CLOSED", `${this.#path} is closed`, {});
  }
}

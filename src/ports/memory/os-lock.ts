// Locks between the parts of one process that share a memory disk. No other process can reach that
// disk, so a table in this process replaces the kernel.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../disk-error.ts";
import type { Disk, DiskFile } from "../disk.ts";
import {
  blanksFor,
  openOrMake,
  type OsLock,
  type OsLockFile,
  type OsLockOptions,
  type OsLockWaiting,
} from "../os-lock.ts";

export function createMemoryOsLock(disk: Disk): OsLock {
  const locks = new LockTable();
  return {
    async open(path, { note, make } = {}) {
      const options = { path, disk, locks, note, make };
      return new MemoryLockFile(options, await openForLocking(options));
    },
  };
}

interface MemoryLockOptions extends OsLockOptions {
  readonly path: string;
  readonly disk: Disk;
  readonly locks: LockTable;
}

interface Opened {
  readonly file: DiskFile;
  readonly identity: string;
}

async function openForLocking({ disk, path, make }: MemoryLockOptions): Promise<Opened> {
  const openThere = (): Promise<DiskFile> => disk.open(path, "write");
  const file = await (make === undefined ? openOrCreate(disk, path) : openOrMake(openThere, make));
  return { file, identity: (await file.stat()).identity };
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
    // Another caller made it meanwhile.
    if (hasErrno(error, "EEXIST")) return await openOrCreate(disk, path);
    throw error;
  }
}

interface Waiter {
  readonly grant: () => void;
}

/**
 * The holder and the waiters of each lock, first come first served. Keyed by the file's identity,
 * not by its path, as in a kernel: a file that was removed and made again is another lock.
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

  /** Hands the lock to the next waiter; it is never free in between. */
  free(identity: string): void {
    const next = this.#waiters.get(identity)?.shift();
    if (next === undefined) this.#waiters.delete(identity);
    else next.grant();
  }
}

class MemoryLockFile implements OsLockFile {
  readonly #options: MemoryLockOptions;
  #opened: Opened;
  #state: "idle" | "asking" | "held" | "closed" = "idle";
  #cancelled: { readonly reason: unknown } | undefined;
  #leaveLine: () => void = () => undefined;

  constructor(options: MemoryLockOptions, opened: Opened) {
    this.#options = options;
    this.#opened = opened;
  }

  get identity(): string {
    return this.#state === "held" ? this.#opened.identity : "";
  }

  async tryLock(): Promise<boolean> {
    if (this.#state === "closed") throw this.#closedError();
    return this.#state === "idle" && (await this.#ask(async () => false));
  }

  async lock({ signal }: OsLockWaiting = {}): Promise<void> {
    signal?.throwIfAborted();
    if (this.#state === "closed") throw this.#closedError();
    if (this.#state !== "idle")
      throw new TypeError(`${this.#options.path} is held or waited for already, through this OsLockFile`);
    const cancel = (): void => this.#cancel(signal?.reason);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await this.#ask(async () => {
        await this.#standInLine();
        return true;
      });
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  async isIntact(): Promise<boolean> {
    return this.#state === "held" && (await this.#bearsName());
  }

  async unlock(): Promise<void> {
    if (this.#state !== "held") return;
    this.#state = "idle";
    await this.#giveUp();
  }

  async close(): Promise<void> {
    if (this.#state === "closed") return;
    const isHeld = this.#state === "held";
    this.#state = "closed";
    this.#cancel(this.#closedError());
    if (isHeld) await this.#giveUp();
    await this.#opened.file.close();
  }

  /** Takes the lock of the file that has the name now. If it is taken, `wait` waits for it or returns false. */
  async #ask(wait: () => Promise<boolean>): Promise<boolean> {
    const { locks, note } = this.#options;
    this.#state = "asking";
    this.#cancelled = undefined;
    try {
      for (;;) {
        if (!locks.tryTake(this.#opened.identity) && !(await wait())) return false;
        const isNamed = await this.#bearsName();
        if (this.#isClosed()) {
          locks.free(this.#opened.identity);
          throw this.#closedError();
        }
        if (isNamed) break;
        locks.free(this.#opened.identity);
        await this.#opened.file.close();
        this.#opened = await openForLocking(this.#options);
      }
      this.#state = "held";
      if (note !== undefined) await this.#opened.file.write(0, note);
      return true;
    } finally {
      if (this.#state === "asking") this.#state = "idle";
    }
  }

  #standInLine(): Promise<void> {
    const { locks } = this.#options;
    const { identity } = this.#opened;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { grant: resolve };
      this.#leaveLine = () => {
        locks.leave(identity, waiter);
        reject(this.#cancelled?.reason);
      };
      locks.wait(identity, waiter);
    });
  }

  async #giveUp(): Promise<void> {
    const { locks, note } = this.#options;
    if (note !== undefined) await this.#opened.file.write(0, blanksFor(note));
    locks.free(this.#opened.identity);
  }

  async #bearsName(): Promise<boolean> {
    const { disk, path } = this.#options;
    return (await disk.findStat(path))?.identity === this.#opened.identity;
  }

  #cancel(reason: unknown): void {
    this.#cancelled ??= { reason };
    this.#leaveLine();
    this.#leaveLine = () => undefined;
  }

  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #closedError(): unknown {
    return holdfastError("CLOSED", `${this.#options.path} is closed`, {});
  }
}

// An OS lock on a local volume, whose waiters sleep in the kernel.
import { closeSync, openSync } from "node:fs";
import { holdfastError } from "../../errors.ts";
import type { OsLockFile } from "../os-lock.ts";
import { toDiskError } from "./errno.ts";
import type { NativeLock } from "./native-lock.ts";

export function openKernelLock(path: string, native: NativeLock, flags: number): OsLockFile {
  return new KernelLockFile(path, native, flags);
}

/** A wait in the kernel. It has a descriptor to itself, and goes on when nobody wants its result any more. */
interface KernelWait {
  readonly fd: number;
  taker: { readonly resolve: () => void; readonly reject: (reason: unknown) => void } | undefined;
}

/**
 * A wait that is cancelled is abandoned, not ended: its descriptor stays open until the kernel grants the lock, is closed then, and so gives the lock
 * up. To close it at once would be wrong: the waiting thread knows only a number. If it has not yet entered the call, or enters it again
 * after a signal (SIGSTOP and SIGCONT, a laptop that slept), it locks whichever file got that number next; both were seen.
 * The next `lock` of this file takes the abandoned wait over, so that there is never more than one waiting thread for it.
 */
class KernelLockFile implements OsLockFile {
  readonly #path: string;
  readonly #native: NativeLock;
  readonly #flags: number;
  #state: "idle" | "waiting" | "held" | "closed" = "idle";
  /** Undefined while a wait has it; opened again at need. */
  #fd: number | undefined;
  #wait: KernelWait | undefined;

  constructor(path: string, native: NativeLock, flags: number) {
    this.#path = path;
    this.#native = native;
    this.#flags = flags;
    this.#descriptor();
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
    if (this.#wait === undefined && this.#tryNow()) return;
    const abandon = (): void => this.#abandon(signal?.reason);
    signal?.addEventListener("abort", abandon, { once: true });
    try {
      await this.#waitInKernel();
    } finally {
      signal?.removeEventListener("abort", abandon);
    }
  }

  async unlock(): Promise<void> {
    if (this.#state !== "held") return;
    this.#state = "idle";
    try {
      this.#native.unlock(this.#descriptor());
    } catch {
      // Closing gives the lock up as well, and cannot leave it taken.
      this.#closeDescriptor();
    }
  }

  async close(): Promise<void> {
    if (this.#state === "closed") return;
    this.#abandon(this.#closedError());
    this.#state = "closed";
    this.#closeDescriptor();
  }

  #tryNow(): boolean {
    try {
      if (!this.#native.tryLock(this.#descriptor())) return false;
    } catch (error) {
      throw toDiskError(error, "lock", this.#path);
    }
    this.#state = "held";
    return true;
  }

  #waitInKernel(): Promise<void> {
    this.#state = "waiting";
    return new Promise((resolve, reject) => {
      const taker = { resolve, reject };
      if (this.#wait !== undefined) {
        this.#wait.taker = taker;
        this.#closeDescriptor();
        return;
      }
      const wait: KernelWait = (this.#wait = { fd: this.#descriptor(), taker });
      this.#fd = undefined;
      this.#native.waitForLock(wait.fd).then(
        () => this.#granted(wait),
        (error: unknown) => this.#refused(wait, error),
      );
    });
  }

  #granted(wait: KernelWait): void {
    this.#wait = undefined;
    if (wait.taker === undefined) return closeQuietly(wait.fd);
    this.#fd = wait.fd;
    this.#state = "held";
    wait.taker.resolve();
  }

  #refused(wait: KernelWait, error: unknown): void {
    this.#wait = undefined;
    closeQuietly(wait.fd);
    if (wait.taker === undefined) return;
    this.#state = "idle";
    wait.taker.reject(toDiskError(error, "lock", this.#path));
  }

  #abandon(reason: unknown): void {
    if (this.#state !== "waiting") return;
    this.#state = "idle";
    this.#wait?.taker?.reject(reason);
    if (this.#wait !== undefined) this.#wait.taker = undefined;
  }

  #descriptor(): number {
    try {
      return (this.#fd ??= openSync(this.#path, this.#flags));
    } catch (error) {
      throw toDiskError(error, "open", this.#path);
    }
  }

  #closeDescriptor(): void {
    if (this.#fd !== undefined) closeQuietly(this.#fd);
    this.#fd = undefined;
  }

  #closedError(): unknown {
    return holdfastError("CLOSED", `${this.#path} is closed`, {});
  }
}

/** The descriptor, and with it the lock, is gone also when closing fails; nothing was written that could be lost. */
function closeQuietly(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // As said above.
  }
}

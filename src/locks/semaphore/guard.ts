// The guard of a lock: an OS lock on a file beside it, held while a process removes or replaces the
// lock. No process can steal it, and it ends with the process that holds it.
import { Deadline } from "../../durable/wait/deadline.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { CreateFileOptions, Disk } from "../../ports/disk.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { tempPathOf } from "./path.ts";

/** For callers that must get the guard: many times what a healthy process needs. */
const waitMsMax = 10_000;

export interface Guarded<T> {
  readonly result: T;
}

export class Guard {
  readonly #ports: Ports;
  readonly #lockPath: string;
  readonly #path: string;

  constructor(ports: Ports, lockPath: string) {
    this.#ports = ports;
    this.#lockPath = lockPath;
    // Never deleted: processes that lock two files of one name do not exclude each other.
    this.#path = `${lockPath}.guard`;
  }

  /**
   * Whether the OS lock excludes every process that can reach this lock. On a share it does not:
   * some mounts keep locks to themselves, and any mount can lose one silently while its holder
   * still runs.
   */
  get isTrusted(): boolean {
    return this.#ports.disk.volume.kind === "local";
  }

  /** Undefined when another process has the guard. UNSUPPORTED_DISK where there are no OS locks. */
  async tryRun<T>(action: () => Promise<T>): Promise<Guarded<T> | undefined> {
    return await this.#tryWith(await this.#openFile(), action);
  }

  /**
   * As `tryRun`, but without a guard where there is none. Nothing is taken over there, so no taker
   * has to be kept out.
   */
  async tryRunIfAny<T>(action: () => Promise<T>): Promise<Guarded<T> | undefined> {
    const file = await this.#openIfAny();
    return file === undefined ? { result: await action() } : await this.#tryWith(file, action);
  }

  /**
   * Waits for the guard, but not for ever: LOCK_TIMEOUT. UNSUPPORTED_DISK where there are no OS
   * locks.
   */
  async run<T>(action: () => Promise<T>): Promise<T> {
    return await this.#runWith(await this.#openFile(), action);
  }

  /**
   * As `run`, but without a guard where there is none; `action` is told. Also without one on a full
   * disk where no guard was made yet: no other process can make one either, and releasing a lock
   * makes room.
   */
  async runIfAny<T>(action: (isGuarded: boolean) => Promise<T>): Promise<T> {
    const file = await this.#openIfAny().catch((error: unknown) => {
      if (!isHoldfastError(error, "DISK_FULL")) throw error;
      return undefined;
    });
    return file === undefined ? await action(false) : await this.#runWith(file, () => action(true));
  }

  /**
   * Opens the guard before the lock is taken, so that a guard that this user may not open fails
   * first. Undefined when there is no guard.
   */
  async open({ isNeeded }: { readonly isNeeded: boolean }): Promise<OsLockFile | undefined> {
    if (!this.isTrusted) return undefined;
    return isNeeded || (await this.#ports.disk.canOpen(this.#path)) ? await this.#openIfAny() : undefined;
  }

  /**
   * What `look` finds under the guard: under `opened`, or under a guard that was made since. True
   * when there is none: a process that makes one later observes the name later.
   */
  async confirm(opened: OsLockFile | undefined, look: () => Promise<boolean>): Promise<boolean> {
    const file = opened ?? (await this.open({ isNeeded: false }));
    return file === undefined || (await this.#runWith(file, look));
  }

  async #openFile(): Promise<OsLockFile> {
    try {
      return await this.#ports.osLock.open(this.#path, { make: () => this.#make() });
    } catch (error) {
      if (hasErrno(error, "ELOOP", "EMLINK")) throw this.#isLink(error);
      // Otherwise this user may not write in the directory.
      const isGuard = isHoldfastError(error, "NO_PERMISSION") && error.path === this.#path;
      throw isGuard && hasErrno(error, "EACCES", "EPERM") ? this.#isClosed(error) : error;
    }
  }

  /** Appears whole, with its final mode: another user that met it half made would be refused. */
  async #make(): Promise<void> {
    const { disk, random } = this.#ports;
    const options = { sync: false, isForDirectory: true };
    const temp = tempPathOf(this.#lockPath, random);
    await createUniqueFile(disk, temp, new Uint8Array(), options);
    try {
      await disk.link(temp, this.#path);
    } catch (error) {
      if (hasErrno(error, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"))
        await createUnlessThere(disk, this.#path, options);
      else if (!hasErrno(error, "EEXIST")) throw error;
    } finally {
      await disk.unlink(temp).catch(() => undefined);
    }
  }

  async #openIfAny(): Promise<OsLockFile | undefined> {
    if (!this.isTrusted) return undefined;
    try {
      return await this.#openFile();
    } catch (error) {
      if (isHoldfastError(error, "UNSUPPORTED_DISK")) return undefined;
      throw error;
    }
  }

  async #tryWith<T>(file: OsLockFile, action: () => Promise<T>): Promise<Guarded<T> | undefined> {
    try {
      return (await file.tryLock()) ? { result: await action() } : undefined;
    } finally {
      await file.close();
    }
  }

  async #runWith<T>(file: OsLockFile, action: () => Promise<T>): Promise<T> {
    try {
      if (!(await file.tryLock())) await this.#wait(file);
      return await action();
    } finally {
      await file.close();
    }
  }

  async #wait(file: OsLockFile): Promise<void> {
    const timedOut = (): Error => this.#timedOut();
    const deadline = new Deadline(this.#ports.clock, { timeoutMs: waitMsMax, timedOut });
    try {
      await file.lock({ signal: deadline.signal });
    } finally {
      deadline.cancel();
    }
  }

  #timedOut(): Error {
    const path = this.#path;
    const message = `${path} has been held by another process for ${waitMsMax} ms. That process was about to remove the lock and seems to be stopped. Nothing was changed. Wake or end that process, then try again.`;
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs: waitMsMax, blockedBy: [] });
  }

  #isClosed(cause: unknown): Error {
    const path = this.#path;
    const message = `This user may not write to ${path}, so a lock taken here could not be released. Let every user who may write in its directory write to it.`;
    return holdfastError("NO_PERMISSION", message, { path }, cause);
  }

  #isLink(cause: unknown): Error {
    const path = this.#path;
    const message = `${path} is a symbolic link, but the guard of a lock must be a regular file. Find out what made the link, and remove it.`;
    return holdfastError("INVALID_PATH", message, { path }, cause);
  }
}

async function createUnlessThere(disk: Disk, path: string, options: CreateFileOptions): Promise<void> {
  try {
    await disk.createFile(path, new Uint8Array(), options);
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
  }
}

// The guard of a lock: an OS lock on a file beside it. A process holds it while it removes or replaces the lock. No
// process can steal it, and it ends with the process that holds it.
import { Deadline } from "../../durable/wait/deadline.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { CreateFileOptions, Disk } from "../../ports/disk.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { tempPathOf } from "./path.ts";

/** How long callers that need the guard wait for it: many times longer than a healthy process holds it. */
const waitMsMax = 10_000;

export interface GuardResult<T> {
  readonly result: T;
}

export class Guard {
  readonly #ports: Ports;
  readonly #lockPath: string;
  readonly #path: string;

  constructor(ports: Ports, lockPath: string) {
    this.#ports = ports;
    this.#lockPath = lockPath;
    // The guard file is never deleted: processes that lock two successive files of one name do not exclude each
    // other.
    this.#path = `${lockPath}.guard`;
  }

  /**
   * True if the OS lock excludes every process that can reach this lock. False on a share: some mounts keep locks
   * local, and any mount can silently lose one while its holder runs.
   */
  get isTrusted(): boolean {
    return this.#ports.disk.volume.kind === "local";
  }

  /** Returns undefined if another process has the guard. Throws UNSUPPORTED_DISK if there are no OS locks. */
  async tryRun<T>(action: () => Promise<T>): Promise<GuardResult<T> | undefined> {
    return await this.#tryWith(await this.#openFile(), action);
  }

  /**
   * Like `tryRun`, but runs without a guard if there are no OS locks. Nothing is taken over there, so no taker must
   * be excluded.
   */
  async tryRunIfAny<T>(action: () => Promise<T>): Promise<GuardResult<T> | undefined> {
    const file = await this.#openIfAny();
    return file === undefined ? { result: await action() } : await this.#tryWith(file, action);
  }

  /** Waits for the guard; throws LOCK_TIMEOUT after a while. Throws UNSUPPORTED_DISK if there are no OS locks. */
  async run<T>(action: () => Promise<T>): Promise<T> {
    return await this.#runWith(await this.#openFile(), action);
  }

  /**
   * Like `run`, but runs `action(false)` without a guard if there are no OS locks. Also does so if the disk is full
   * and the guard file does not exist: no other process can create it either, and releasing a lock frees space.
   */
  async runIfAny<T>(action: (isGuarded: boolean) => Promise<T>): Promise<T> {
    const file = await this.#openIfAny().catch((error: unknown) => {
      if (!isHoldfastError(error, "DISK_FULL")) throw error;
      return undefined;
    });
    return file === undefined ? await action(false) : await this.#runWith(file, () => action(true));
  }

  /**
   * Opens the guard before the lock is acquired, so that a guard file without permission fails first. Returns
   * undefined if there is no guard.
   */
  async open({ isNeeded }: { readonly isNeeded: boolean }): Promise<OsLockFile | undefined> {
    if (!this.isTrusted) return undefined;
    return isNeeded || (await this.#ports.disk.canOpen(this.#path)) ? await this.#openIfAny() : undefined;
  }

  /**
   * Returns the result of `look` under the guard: `opened`, or one that was created since. Returns true if there is
   * none: a process that creates one later also observes the lock later.
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
      // Otherwise this user has no permission to write in the directory.
      const isGuard = isHoldfastError(error, "NO_PERMISSION") && error.path === this.#path;
      throw isGuard && hasErrno(error, "EACCES", "EPERM") ? this.#isClosed(error) : error;
    }
  }

  /** Creates the guard file complete, with its final mode: another user that opened it half made would be refused. */
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

  async #tryWith<T>(file: OsLockFile, action: () => Promise<T>): Promise<GuardResult<T> | undefined> {
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

// The guard of a lock: whoever removes or replaces what is under the lock's name holds an OS lock meanwhile, which nobody can steal and no crash can leave behind.
import { Deadline } from "../../durable/deadline.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";

/** For those who have to get it: as long as a healthy process keeps it, many times over. */
const waitMsMax = 10_000;

export interface Guarded<T> {
  readonly result: T;
}

export class Guard {
  readonly #ports: Ports;
  readonly #path: string;

  constructor(ports: Ports, lockPath: string) {
    this.#ports = ports;
    // Never deleted: two who lock two files of one name exclude nobody.
    this.#path = `${lockPath}.guard`;
  }

  /**
   * Whether the OS lock excludes everybody who could be at this lock. On a share it does not: some mounts keep locks to themselves, and all can lose one without a
   * word while its holder lives on.
   */
  get isTrusted(): boolean {
    return this.#ports.disk.volume.kind === "local";
  }

  /** Undefined when somebody else has it. UNSUPPORTED_DISK where there are no OS locks. */
  async tryRun<T>(action: () => Promise<T>): Promise<Guarded<T> | undefined> {
    return await this.#tryWith(await this.#openFile(), action);
  }

  /** As above, but without a guard where none can be had: there nobody takes over, so nobody has to be kept out. */
  async tryRunIfAny<T>(action: () => Promise<T>): Promise<Guarded<T> | undefined> {
    const file = await this.#openIfAny();
    return file === undefined ? { result: await action() } : await this.#tryWith(file, action);
  }

  /** Waits for it, but not for ever: LOCK_TIMEOUT. UNSUPPORTED_DISK where there are no OS locks. */
  async run<T>(action: () => Promise<T>): Promise<T> {
    return await this.#runWith(await this.#openFile(), action);
  }

  /** As above, but without a guard where none can be had; `action` is told. */
  async runIfAny<T>(action: (isGuarded: boolean) => Promise<T>): Promise<T> {
    const file = await this.#openIfAny();
    return file === undefined ? await action(false) : await this.#runWith(file, () => action(true));
  }

  /** Opened before it is needed: a guard that this user may not open is met before the lock is taken. Undefined when there is none. */
  async open({ isNeeded }: { readonly isNeeded: boolean }): Promise<OsLockFile | undefined> {
    if (!this.isTrusted) return undefined;
    return isNeeded || (await this.#ports.disk.canOpen(this.#path)) ? await this.#openIfAny() : undefined;
  }

  /**
   * What `look` finds under the guard, if there is one by now: `opened`, or one that was made since. Else true: who makes
   * one later looks at the name later.
   */
  async confirm(opened: OsLockFile | undefined, look: () => Promise<boolean>): Promise<boolean> {
    const file = opened ?? (await this.open({ isNeeded: false }));
    return file === undefined || (await this.#runWith(file, look));
  }

  #openFile(): Promise<OsLockFile> {
    return this.#ports.osLock.open(this.#path);
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
    const message = `${path} has been held by another process for ${waitMsMax} ms: one that is about to remove the lock, and seems to be stopped. Nothing was changed.`;
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs: waitMsMax, blockedBy: [] });
  }
}

// The OS lock as one simulated process takes it: a descriptor of its own, whose calls park.
import { holdfastError } from "../../errors.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Outcome, Park, Touch } from "./call.ts";
import type { SimFile } from "./file.ts";
import type { LockOwner, SimOsLocks } from "./os-locks.ts";

export interface SimOsLockFileOptions {
  readonly file: SimFile;
  readonly owner: LockOwner;
  readonly osLocks: SimOsLocks;
  readonly park: Park;
}

export class SimOsLockFile implements OsLockFile {
  readonly #options: SimOsLockFileOptions;
  readonly #touches: readonly Touch[];
  #isWaiting = false;
  #closing: Promise<void> | undefined;

  constructor(options: SimOsLockFileOptions) {
    this.#options = options;
    this.#touches = [{ what: `os lock ${options.owner.file.ino}`, changes: true }];
  }

  async tryLock(): Promise<boolean> {
    this.#mustBeOpen();
    const { owner, osLocks } = this.#options;
    return await this.#park("try lock", () => [{ label: "", run: () => osLocks.take(owner) }]);
  }

  async lock({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    signal?.throwIfAborted();
    this.#mustBeOpen();
    const { owner, osLocks } = this.#options;
    if (this.#isWaiting || osLocks.isHeldBy(owner))
      throw new TypeError(`${owner.path} is held or waited for already, through this OsLockFile`);
    this.#isWaiting = true;
    try {
      await this.#park("lock", () => {
        if (signal?.aborted) return [{ label: "cancelled", run: () => signal.throwIfAborted() }];
        if (this.#closing !== undefined) return [{ label: "closed", run: () => this.#mustBeOpen() }];
        return osLocks.isFree(owner) ? [{ label: "", run: () => void osLocks.take(owner) }] : [];
      });
    } finally {
      this.#isWaiting = false;
    }
  }

  async unlock(): Promise<void> {
    const { owner, osLocks } = this.#options;
    if (osLocks.isHeldBy(owner)) await this.#park("unlock", () => [{ label: "", run: () => osLocks.free(owner) }]);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const { owner, osLocks, file } = this.#options;
    await this.#park("close lock", () => [{ label: "", run: () => osLocks.free(owner) }]);
    await file.close();
  }

  #park<T>(operation: string, outcomes: () => readonly Outcome<T>[]): Promise<T> {
    return this.#options.park({ operation, detail: this.#options.owner.path, touches: this.#touches, outcomes });
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw holdfastError("CLOSED", `${this.#options.owner.path} is closed`, {});
  }
}

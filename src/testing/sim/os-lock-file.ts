// The OS lock as one simulated process uses it: a descriptor of its own, whose calls park.
import { holdfastError } from "../../errors.ts";
import type { OsLockFile, OsLockWaiting } from "../../ports/os-lock.ts";
import type { CallOutcome, Park, Touch } from "./call.ts";
import type { SimFile } from "./file.ts";
import type { LockOwner, SimOsLocks } from "./os-locks.ts";

/** The file that was opened for a lock. */
export interface OpenedLock {
  readonly file: SimFile;
  readonly owner: LockOwner;
}

export interface SimOsLockFileOptions {
  readonly path: string;
  /** Opens the file that has the name now, and creates it if there is none. */
  readonly open: () => Promise<OpenedLock>;
  /**
   * The touch of comparing the name: a grant counts only if the name leads to the locked file. Undefined on a share.
   */
  readonly nameTouch: Touch | undefined;
  readonly osLocks: SimOsLocks;
  readonly park: Park;
}

export class SimOsLockFile implements OsLockFile {
  readonly #options: SimOsLockFileOptions;
  #opened: OpenedLock;
  #isWaiting = false;
  #closing: Promise<void> | undefined;

  constructor(options: SimOsLockFileOptions, opened: OpenedLock) {
    this.#options = options;
    this.#opened = opened;
  }

  get identity(): string {
    const { owner } = this.#opened;
    return this.#options.osLocks.isHeldBy(owner) ? identityOf(owner) : "";
  }

  async tryLock(): Promise<boolean> {
    for (;;) {
      this.#mustBeOpen();
      const answer = await this.#park("try lock", () => [{ label: "", run: () => this.#take() }]);
      if (answer !== "gone") return answer !== "taken";
      await this.#openAnew();
    }
  }

  async lock({ signal }: OsLockWaiting = {}): Promise<void> {
    signal?.throwIfAborted();
    this.#mustBeOpen();
    const { osLocks, path } = this.#options;
    if (this.#isWaiting || osLocks.isHeldBy(this.#opened.owner))
      throw new TypeError(`${path} is held or waited for already, through this OsLockFile`);
    this.#isWaiting = true;
    try {
      while ((await this.#wait(signal)) === "gone") await this.#openAnew();
    } finally {
      this.#isWaiting = false;
    }
  }

  async isIntact(): Promise<boolean> {
    const { osLocks, nameTouch } = this.#options;
    const { owner } = this.#opened;
    if (!osLocks.isHeldBy(owner)) return false;
    return (
      nameTouch === undefined || (await this.#park("look at lock", () => [{ label: "", run: () => owner.isNamed() }]))
    );
  }

  async unlock(): Promise<void> {
    const { osLocks } = this.#options;
    const { owner } = this.#opened;
    if (osLocks.isHeldBy(owner)) await this.#park("unlock", () => [{ label: "", run: () => osLocks.free(owner) }]);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const { file, owner } = this.#opened;
    await this.#park("close lock", () => [{ label: "", run: () => this.#options.osLocks.free(owner) }]);
    await file.close();
  }

  async #openAnew(): Promise<void> {
    await this.#opened.file.close();
    this.#opened = await this.#options.open();
  }

  #wait(signal: AbortSignal | undefined): Promise<string> {
    return this.#park("lock", () => {
      if (signal?.aborted) return [{ label: "cancelled", run: () => signal.throwIfAborted() as never }];
      if (this.#closing !== undefined) return [{ label: "closed", run: () => this.#mustBeOpen() as never }];
      return this.#options.osLocks.isFree(this.#opened.owner) ? [{ label: "", run: () => this.#take() }] : [];
    });
  }

  /**
   * Returns the identity of the locked file, "taken" or "gone". Locking and comparing the name are one step: a change
   * between them makes the process open the file again, as a change before them does.
   */
  #take(): string {
    const { osLocks, nameTouch } = this.#options;
    const { owner } = this.#opened;
    if (!osLocks.take(owner)) return "taken";
    if (nameTouch === undefined || owner.isNamed()) return identityOf(owner);
    osLocks.free(owner);
    return "gone";
  }

  #park<T>(operation: string, outcomes: () => readonly CallOutcome<T>[]): Promise<T> {
    const { path, park, nameTouch } = this.#options;
    const lockTouch = { what: `os lock ${identityOf(this.#opened.owner)}`, changes: true };
    const touches = nameTouch === undefined ? [lockTouch] : [lockTouch, nameTouch];
    return park({ operation, detail: path, touches, outcomes });
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw holdfastError("CLOSED", `${this.#options.path} is closed`, {});
  }
}

function identityOf({ file }: LockOwner): string {
  return String(file.ino);
}

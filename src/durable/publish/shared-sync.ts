// SharedSync: one directory sync makes names durable for all callers that wait for it.
import { HoldfastError, isHoldfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import { syncIdentified } from "./directory.ts";

export class SharedSync {
  readonly #disk: Disk;
  /** By directory: the sync that has not started. New callers join it. */
  readonly #next = new Map<string, Promise<string | void>>();
  /** By directory: the sync in progress. It may have missed a name that was made after it started. */
  readonly #current = new Map<string, Promise<string | void>>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /**
   * Makes the names that are in `directory` at the time of the call durable. A failed sync fails
   * every call that waited for it, each with its own error; later calls start a new sync. Fails
   * like `syncNames`.
   */
  async sync(directory: string): Promise<void> {
    await this.syncIdentified(directory);
  }

  /** Like `sync`, and returns the directory's identity, as `syncDirectory` does. */
  async syncIdentified(directory: string): Promise<string | void> {
    let next = this.#next.get(directory);
    if (next === undefined) {
      next = this.#run(directory);
      this.#next.set(directory, next);
    }
    try {
      return await next;
    } catch (error) {
      throw isHoldfastError(error) ? new HoldfastError(error.code, error.message, error, error) : error;
    }
  }

  async #run(directory: string): Promise<string | void> {
    // The await also lets concurrent callers join.
    await this.#current.get(directory)?.catch(() => undefined);
    // Delete before the sync starts, not after: a caller that arrives now needs the next one.
    this.#next.delete(directory);
    const current = syncIdentified(this.#disk, directory);
    this.#current.set(directory, current);
    try {
      return await current;
    } finally {
      if (this.#current.get(directory) === current) this.#current.delete(directory);
    }
  }
}

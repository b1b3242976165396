// SharedSync: one sync of a directory makes its names durable for all callers that wait for it.
import { HoldfastError, isHoldfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import { syncNames } from "./directory.ts";

export class SharedSync {
  readonly #disk: Disk;
  /** By directory: the sync that has not begun. A caller joins it. */
  readonly #next = new Map<string, Promise<void>>();
  /** By directory: the sync that is under way. It may have passed over a name that was made since it began. */
  readonly #current = new Map<string, Promise<void>>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /**
   * Makes the names durable that are in `directory` when this is called. A failed sync fails the calls that waited
   * for it, each with an error of its own; later calls ask for a sync of their own. Fails as `syncNames` does.
   */
  async sync(directory: string): Promise<void> {
    let next = this.#next.get(directory);
    if (next === undefined) {
      next = this.#run(directory);
      this.#next.set(directory, next);
    }
    try {
      await next;
    } catch (error) {
      throw isHoldfastError(error) ? new HoldfastError(error.code, error.message, error, error) : error;
    }
  }

  async #run(directory: string): Promise<void> {
    // This also lets callers of the same moment join.
    await this.#current.get(directory)?.catch(() => undefined);
    // Before the sync begins, and not after it: a caller that comes now needs the one after.
    this.#next.delete(directory);
    const current = syncNames(this.#disk, directory);
    this.#current.set(directory, current);
    try {
      await current;
    } finally {
      if (this.#current.get(directory) === current) this.#current.delete(directory);
    }
  }
}

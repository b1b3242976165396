// Reserve: disk space that is kept for removals. A removal writes a record before it frees
// anything, and on a full disk there is no room for that record.
import { ensureDirectory, unlinkIfThere } from "../durable/publish/directory.ts";
import { renameOnce } from "../durable/publish/publish.ts";
import { discard, stage, type Staging } from "../durable/publish/staging.ts";
import { Fifo } from "../durable/wait/fifo.ts";
import { isHoldfastError } from "../errors.ts";

/**
 * Several files: each removal on a full disk deletes one, and other writers may take the space that it leaves unused.
 */
const filesMax = 16;
/** More than a removal needs with blocks of 4 KiB; with larger blocks, each file occupies a whole one. */
const fileBytes = 32 * 1024;
/** More than there are files, because other writers may take the space that is freed. */
const attemptsMax = 2 * filesMax;

export class Reserve {
  readonly #staging: Staging;
  readonly #directory: string;
  readonly #turns = new Fifo();
  /** How many files this process has deleted. */
  #given = 0;

  constructor(staging: Staging, directory: string) {
    this.#staging = staging;
    this.#directory = directory;
  }

  /**
   * Runs `work`, which removes something. If the disk is full, it deletes a file of the reserve and
   * repeats the work; DISK_FULL if none is left. The work must be repeatable.
   */
  async use<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const before = this.#given;
      try {
        const done = await work();
        if (attempt > 1) await this.fill();
        return done;
      } catch (error) {
        if (!isHoldfastError(error, "DISK_FULL") || attempt >= attemptsMax || !(await this.#giveUp(before)))
          throw error;
      }
    }
  }

  /**
   * Deletes one file of the reserve, unless another caller has deleted one since `before`: that may have freed enough
   * for all. Returns false if none is left.
   */
  async #giveUp(before: number): Promise<boolean> {
    await this.#turns.take();
    try {
      if (this.#given > before) return true;
      for (const path of this.#paths())
        if (await this.#remove(path)) {
          this.#given++;
          return true;
        }
      return false;
    } finally {
      this.#turns.give();
    }
  }

  /** Removes a file. Returns false if it does not exist, or if a foreign entry has its name. */
  async #remove(path: string): Promise<boolean> {
    const { disk } = this.#staging;
    try {
      if ((await disk.findStat(path))?.kind !== "file") return false;
      await unlinkIfThere(disk, path);
      return true;
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      return false;
    }
  }

  /** Recreates missing files, as far as there is space. A store without a reserve works too. */
  async fill(): Promise<void> {
    const { disk } = this.#staging;
    try {
      await ensureDirectory(disk, this.#directory);
      for (const path of this.#paths()) if ((await disk.findStat(path))?.size !== fileBytes) await this.#make(path);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
  }

  /** Random bytes: a compressing file system would reserve no space for others. */
  async #make(path: string): Promise<void> {
    const { disk, random } = this.#staging;
    const temp = await stage(this.#staging, random.bytes(fileBytes), { sync: false });
    try {
      await renameOnce(disk, temp, path);
    } catch (error) {
      await discard(this.#staging, temp);
      throw error;
    }
  }

  #paths(): string[] {
    return Array.from({ length: filesMax }, (_, index) => `${this.#directory}/${index}`);
  }
}

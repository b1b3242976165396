// Reserve: disk space that is kept for removals. A removal writes a record before it frees
// anything, and on a full disk there is no room for that record.
import { ensureDirectory, unlinkIfThere } from "../durable/publish/directory.ts";
import { renameOnce } from "../durable/publish/publish.ts";
import { discard, stage, type Staging } from "../durable/publish/staging.ts";
import { Fifo } from "../durable/wait/fifo.ts";
import { isHoldfastError } from "../errors.ts";

/**
 * Several files: a removal on a full disk deletes few of them, and other writers may take the space that it leaves
 * unused.
 */
const filesMax = 16;
/** More than a removal needs with blocks of 4 KiB; with larger blocks, each file occupies a whole one. */
const fileBytes = 32 * 1024;
/** Empty files, for a disk that has bytes left and no inodes: each name that a removal makes needs one. */
const emptyFilesMax = 32;
/** How many empty files are deleted with each other one: more than an attempt that fails midway leaves behind. */
const emptyFilesEach = 2;
/** More than it takes to delete all files, because other writers may take the space that is freed. */
const attemptsMax = 2 * filesMax;

export class Reserve {
  readonly #staging: Staging;
  readonly #directory: string;
  readonly #turns = new Fifo();
  /** How often this process has deleted files. */
  #given = 0;

  constructor(staging: Staging, directory: string) {
    this.#staging = staging;
    this.#directory = directory;
  }

  /**
   * Runs `work`, which removes something. If the disk is full, it deletes files of the reserve and
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
   * Deletes a file with bytes and some empty ones, unless another caller has deleted files since `before`: that may
   * have freed enough for all. Returns false if none is left.
   */
  async #giveUp(before: number): Promise<boolean> {
    await this.#turns.take();
    try {
      if (this.#given > before) return true;
      const full = await this.#removeSome(this.#paths(), 1);
      const empty = await this.#removeSome(this.#emptyPaths(), emptyFilesEach);
      if (full + empty === 0) return false;
      this.#given++;
      return true;
    } finally {
      this.#turns.give();
    }
  }

  /** Removes at most `count` of these files, and returns how many. */
  async #removeSome(paths: readonly string[], count: number): Promise<number> {
    let removed = 0;
    for (const path of paths) {
      if (removed === count) break;
      if (await this.#remove(path)) removed++;
    }
    return removed;
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
      const names = new Set(await disk.list(this.#directory));
      for (const path of this.#emptyPaths())
        if (!names.has(path.slice(this.#directory.length + 1)))
          await disk.createFile(path, new Uint8Array(), { sync: false });
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

  #emptyPaths(): string[] {
    return Array.from({ length: emptyFilesMax }, (_, index) => `${this.#directory}/empty-${index}`);
  }
}

// Where the indexes of one log are kept: in files that all processes share, or in memory where
// nothing can be written.
import type { Staging } from "../../durable/publish/staging.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { openIndexFile, publishIndexFile, removeCovered } from "./file/index-file.ts";
import type { Coverage, WriteAt } from "./file/index-layout.ts";
import { writeIndex } from "./build/index-writer.ts";
import { MemoryImage, MemoryImages } from "./memory/memory-image.ts";
import { mergedContentOf } from "./build/merged-content.ts";
import { SealedIndex } from "./file/sealed-index.ts";
import { imageOf, type ImageSource } from "./build/segment-image.ts";
import type { SealedSegment } from "./keys/indexed-line.ts";
import type { MergeRange } from "./merge-range.ts";
import { UnusableIndex } from "./file/index-blocks.ts";

export interface IndexStoreOptions extends ImageSource {
  readonly staging: Staging;
  /** Created with the first index file. */
  readonly directory: string;
  readonly logId: string;
  /**
   * Memory for indexes that cannot be written, without their filters. Default 24 MiB, about ten
   * segments.
   */
  readonly memoryBytesMax?: number | undefined;
}

const memoryBytesMaxDefault = 24 * 1024 * 1024;

export class IndexStore {
  /** False after a failed write. A build sets it, to try again. */
  isWritable = true;
  #mayMerge = true;
  readonly #options: IndexStoreOptions;
  readonly #images: MemoryImages;

  constructor(options: IndexStoreOptions) {
    this.#options = options;
    this.#images = new MemoryImages(options.memoryBytesMax ?? memoryBytesMaxDefault);
  }

  async findFile(range: MergeRange): Promise<SealedIndex | undefined> {
    try {
      return await openIndexFile(this.#options.staging.disk, this.#pathOf(range), range.name, this.#coverageOf(range));
    } catch (error) {
      if (error instanceof UnusableIndex) return undefined;
      throw error;
    }
  }

  /**
   * Reads the segment and writes its index. It stays in memory if it cannot be written, or with
   * `inMemory`.
   */
  async makeIndex(range: MergeRange, { inMemory }: { readonly inMemory: boolean }): Promise<SealedIndex> {
    const { logId, scan, findActive, pause } = this.#options;
    const make = (pausing?: typeof pause): Promise<Uint8Array> =>
      imageOf(logId, range.segments[0] as SealedSegment, { scan, findActive, pause: pausing });
    const bytes = await make(pause);
    const isWritten = !inMemory && (await this.#write(range, (write) => write(0, bytes)));
    const written = isWritten ? await this.findFile(range) : undefined;
    return written ?? SealedIndex.open(new MemoryImage(this.#images, bytes, () => make()), this.#coverageOf(range));
  }

  /** False when it cannot be written. UnusableIndex when one of `parts` cannot be read. */
  async merge(range: MergeRange, parts: readonly SealedIndex[]): Promise<boolean> {
    const { pause } = this.#options;
    return this.#write(range, async (write) => {
      const content = await mergedContentOf(parts, pause);
      await writeIndex(this.#coverageOf(range), content, async (offset, bytes) => {
        if (!this.#mayMerge) throw closed();
        await write(offset, bytes);
        await pause?.();
      });
    });
  }

  /** Removes the files of the parts of these. */
  async removeParts(ranges: readonly MergeRange[]): Promise<void> {
    const { staging, directory } = this.#options;
    try {
      await removeCovered(staging.disk, directory, ranges);
    } catch (error) {
      // They only take space; the next build tries again.
      if (!isHoldfastError(error)) throw error;
    }
  }

  /** Also merges that are under way: they reject with CLOSED. */
  endMerges(): void {
    this.#mayMerge = false;
  }

  async #write(range: MergeRange, fill: (write: WriteAt) => Promise<void>): Promise<boolean> {
    if (!this.isWritable) return false;
    try {
      await publishIndexFile(this.#options.staging, this.#pathOf(range), fill);
      return true;
    } catch (error) {
      // No permission, a full disk, a lost reply: an index is a cache, and reads and appends go on
      // without it.
      if (!isHoldfastError(error)) throw error;
      this.isWritable = false;
      return false;
    }
  }

  #pathOf({ name }: MergeRange): string {
    return `${this.#options.directory}/${name}.idx`;
  }

  #coverageOf({ segments }: MergeRange): Coverage {
    return { logId: this.#options.logId, segments };
  }
}

export function closed(): Error {
  return holdfastError("CLOSED", "This log is closed. Open it again.", {});
}

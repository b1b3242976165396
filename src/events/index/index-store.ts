// Where the indexes of one log are: files that all processes share, or memory where nothing can be written.
import type { Staging } from "../../durable/publish/staging.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { IndexTarget } from "./build/block-stream.ts";
import { openIndexFile, publishIndexFile, removeCovered } from "./file/index-file.ts";
import type { Coverage } from "./file/index-header.ts";
import { writeIndex } from "./build/index-writer.ts";
import { MemoryImage, MemoryImages } from "./memory/memory-image.ts";
import { mergedContentOf } from "./build/merged-content.ts";
import { SealedIndex } from "./file/sealed-index.ts";
import { imageOf, type ImageSource } from "./build/segment-image.ts";
import type { SealedSegment } from "./indexed-line.ts";
import type { MergeRange } from "./merge-range.ts";
import { UnusableIndex } from "./unusable-index.ts";

export interface IndexStoreOptions extends ImageSource {
  readonly staging: Staging;
  /** Made when the first index is written. */
  readonly directory: string;
  readonly logId: string;
  /** How much memory may be taken by indexes that cannot be written, beside their filters. Default 24 MiB, about ten segments. */
  readonly memoryBytesMax?: number | undefined;
}

const memoryBytesMaxDefault = 24 * 1024 * 1024;

export class IndexStore {
  /** False after a failed write, until somebody says that it is worth trying again. */
  isWritable = true;
  #mayMerge = true;
  readonly #options: IndexStoreOptions;
  readonly #images: MemoryImages;

  constructor(options: IndexStoreOptions) {
    this.#options = options;
    this.#images = new MemoryImages(options.memoryBytesMax ?? memoryBytesMaxDefault);
  }

  async findFile(span: MergeRange): Promise<SealedIndex | undefined> {
    try {
      return await openIndexFile(this.#options.staging.disk, this.#pathOf(span), span.name, this.#coverageOf(span));
    } catch (error) {
      if (error instanceof UnusableIndex) return undefined;
      throw error;
    }
  }

  /** Reads the segment, and writes its index if it can; `inMemory` when the disk is not to be trusted with it. */
  async makeIndex(span: MergeRange, { inMemory }: { readonly inMemory: boolean }): Promise<SealedIndex> {
    const { logId, scan, findActive, pause } = this.#options;
    const make = (pausing?: typeof pause): Promise<Uint8Array> =>
      imageOf(logId, span.segments[0] as SealedSegment, { scan, findActive, pause: pausing });
    const bytes = await make(pause);
    const isWritten = !inMemory && (await this.#write(span, (write) => write(0, bytes)));
    const written = isWritten ? await this.findFile(span) : undefined;
    return written ?? SealedIndex.open(new MemoryImage(this.#images, bytes, () => make()), this.#coverageOf(span));
  }

  /** False when it cannot be written. UnusableIndex when one of `parts` cannot be read. */
  async merge(span: MergeRange, parts: readonly SealedIndex[]): Promise<boolean> {
    const { pause } = this.#options;
    return this.#write(span, async (write) => {
      const content = await mergedContentOf(parts, pause);
      await writeIndex(this.#coverageOf(span), content, async (offset, bytes) => {
        if (!this.#mayMerge) throw closed();
        await write(offset, bytes);
        await pause?.();
      });
    });
  }

  /** Removes the files of the parts of these. */
  async removeParts(spans: readonly MergeRange[]): Promise<void> {
    const { staging, directory } = this.#options;
    try {
      await removeCovered(staging.disk, directory, spans);
    } catch (error) {
      // They take room and nothing else; the next build tries again.
      if (!isHoldfastError(error)) throw error;
    }
  }

  /** Also those that are under way. */
  endMerges(): void {
    this.#mayMerge = false;
  }

  async #write(span: MergeRange, fill: (write: IndexTarget["write"]) => Promise<void>): Promise<boolean> {
    if (!this.isWritable) return false;
    try {
      await publishIndexFile(this.#options.staging, this.#pathOf(span), fill);
      return true;
    } catch (error) {
      // No permission, a full disk, a lost answer: an index is a convenience, and no reason to refuse to read or to append.
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

// Stores the indexes of one log: in files that all processes share, or in memory if nothing can be
// written.
import { parentOf } from "../../durable/publish/directory.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { HelperThread, Threads } from "../../ports/threads.ts";
import { mergeInto } from "./build/merged-content.ts";
import { imageOf, type ImageSource } from "./build/segment-image.ts";
import { UnusableIndex } from "./file/index-blocks.ts";
import { createIndexFile, openIndexFile, publishIndexFile, removeCovered } from "./file/index-file.ts";
import type { Coverage, WriteAt } from "./file/index-layout.ts";
import { SealedIndex } from "./file/sealed-index.ts";
import { joinIndexThread, type IndexRequest } from "./index-thread.ts";
import type { SealedSegment } from "./keys/indexed-line.ts";
import { MemoryImage, MemoryImages } from "./memory/memory-image.ts";
import type { MergeRange } from "./merge-range.ts";

export interface IndexStoreOptions extends ImageSource {
  readonly staging: Staging;
  /** Created with the first index file. The index thread expects the log in its parent directory. */
  readonly directory: string;
  readonly logId: string;
  /** Starts the thread that writes index files. Without it, or if none can be started, this thread writes them. */
  readonly threads?: Threads | undefined;
  /** Memory for indexes that cannot be written, without their filters. Default 24 MiB: about ten segments. */
  readonly memoryBytesMax?: number | undefined;
}

const memoryBytesMaxDefault = 24 * 1024 * 1024;

export class IndexStore {
  /** False after a failed write. The next build sets it to true, to retry. */
  isWritable = true;
  readonly #options: IndexStoreOptions;
  readonly #images: MemoryImages;
  readonly #thread: HelperThread | undefined;
  readonly #merging = new AbortController();

  constructor(options: IndexStoreOptions) {
    this.#options = options;
    this.#images = new MemoryImages(options.memoryBytesMax ?? memoryBytesMaxDefault);
    this.#thread = options.threads && joinIndexThread(options.threads);
  }

  async findFile(range: MergeRange): Promise<SealedIndex | undefined> {
    try {
      return await openIndexFile(this.#options.staging.disk, this.#pathOf(range), range.name, this.#coverageOf(range));
    } catch (error) {
      if (error instanceof UnusableIndex) return undefined;
      throw error;
    }
  }

  /** Reads the segment and writes its index. The index stays in memory if it cannot be written, or with `inMemory`. */
  async makeIndex(range: MergeRange, { inMemory }: { readonly inMemory: boolean }): Promise<SealedIndex> {
    // The index of one segment takes a moment, so it is finished even if the log is being closed.
    const made = !inMemory && (await this.#publishByThread(range, [])) ? await this.findFile(range) : undefined;
    if (made !== undefined) return made;
    const { logId, scan, findActive, pause } = this.#options;
    const make = (pausing?: typeof pause): Promise<Uint8Array> =>
      imageOf(logId, range.segments[0] as SealedSegment, { scan, findActive, pause: pausing });
    const bytes = await make(pause);
    const isWritten = !inMemory && (await this.#publish(range, (temp) => this.#fill(temp, (write) => write(0, bytes))));
    const written = isWritten ? await this.findFile(range) : undefined;
    return written ?? SealedIndex.open(new MemoryImage(this.#images, bytes, () => make()), this.#coverageOf(range));
  }

  /** Returns false if the merged index cannot be written. Throws UnusableIndex if one of `parts` cannot be read. */
  async merge(range: MergeRange, parts: readonly SealedIndex[]): Promise<boolean> {
    const { pause } = this.#options;
    const { signal } = this.#merging;
    if (await this.#publishByThread(range, parts, signal)) return true;
    if (signal.aborted) throw closedError();
    return this.#publish(range, (temp) =>
      this.#fill(temp, (write) => {
        const writing: WriteAt = async (offset, bytes) => {
          if (signal.aborted) throw closedError();
          await write(offset, bytes);
        };
        return mergeInto(writing, this.#coverageOf(range), parts, pause);
      }),
    );
  }

  /** Removes the files of the parts of these ranges. */
  async removeParts(ranges: readonly MergeRange[]): Promise<void> {
    const { staging, directory } = this.#options;
    try {
      await removeCovered(staging.disk, directory, ranges);
    } catch (error) {
      // The files only take space. The next build tries again.
      if (!isHoldfastError(error)) throw error;
    }
  }

  /** Also ends merges in progress: they reject with CLOSED. */
  endMerges(): void {
    this.#merging.abort();
  }

  /** Call it when nothing is in progress. */
  async close(): Promise<void> {
    await this.#thread?.leave();
  }

  /** Publishes the file that `make` creates. Returns false if `make` does, or if nothing can be written. */
  async #publish(range: MergeRange, make: (temp: string) => Promise<boolean>): Promise<boolean> {
    if (!this.isWritable) return false;
    try {
      return await publishIndexFile(this.#options.staging, this.#pathOf(range), make);
    } catch (error) {
      // Permission is missing, the disk is full, or a reply was lost. An index is a cache: reads and appends continue
      // without it.
      if (!isHoldfastError(error)) throw error;
      this.isWritable = false;
      return false;
    }
  }

  /** Returns false if no thread built it, for any reason. The caller then builds it. */
  async #publishByThread(range: MergeRange, parts: readonly SealedIndex[], signal?: AbortSignal): Promise<boolean> {
    const thread = this.#thread;
    if (thread === undefined) return false;
    const { directory } = this.#options;
    const order = {
      log: parentOf(directory),
      directory,
      coverage: this.#coverageOf(range),
      parts: parts.map(({ coverage }) => coverage),
    };
    return await this.#publish(range, (temp) => thread.run({ ...order, temp } satisfies IndexRequest, signal));
  }

  async #fill(temp: string, fill: (write: WriteAt) => Promise<void>): Promise<boolean> {
    await createIndexFile(this.#options.staging.disk, temp, fill);
    return true;
  }

  #pathOf({ name }: MergeRange): string {
    return `${this.#options.directory}/${name}.idx`;
  }

  #coverageOf({ segments }: MergeRange): Coverage {
    return { logId: this.#options.logId, segments };
  }
}

export function closedError(): Error {
  return holdfastError("CLOSED", "This log is closed. Open it again.", {});
}

// Reads the blocks of one index. Each block is checked: if it is not what was written for this log,
// these segments and this offset, it is refused.
import {
  blockBytes,
  isSealed,
  getLayout,
  headerBytesMax,
  indexNameOf,
  stampOf,
  type Coverage,
  type Layout,
  type SegmentTimes,
} from "./index-layout.ts";

/** An index that cannot be used, for whatever reason. No caller of the index sees it: the log is read instead. */
export class UnusableIndex extends Error {
  /** The name of the file: `<first segment>-<last segment>`. */
  readonly index: string;

  constructor(index: string, why: string, cause?: unknown) {
    super(`The index ${index} cannot be used: ${why}.`, { cause });
    this.index = index;
  }
}

/**
 * The bytes of an index: a file, or an image in memory. A read returns fewer bytes than requested
 * only at the end. A file that cannot be read rejects with UnusableIndex.
 */
export interface IndexSource {
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** Enough for a few lists that are read in parallel, and for lines that are read in sequence. */
const blocksKept = 32;
const blocksPerRead = 16;
const newline = 0x0a;

export class IndexBlocks {
  readonly name: string;
  readonly layout: Layout;
  readonly times: SegmentTimes;
  readonly #source: IndexSource;
  readonly #dataStart: number;
  readonly #stamp: number;
  readonly #kept = new Map<number, Buffer>();

  /** Reads only the header. Throws UnusableIndex unless it covers exactly `coverage`. */
  static async open(source: IndexSource, coverage: Coverage): Promise<IndexBlocks> {
    const name = indexNameOf(coverage);
    const record = await findRecordIn(source);
    if (record === undefined) throw new UnusableIndex(name, "it has no header");
    return new IndexBlocks(source, coverage, record);
  }

  private constructor(source: IndexSource, coverage: Coverage, record: Uint8Array) {
    this.name = indexNameOf(coverage);
    ({ layout: this.layout, times: this.times } = headerIn(record, coverage, this.name));
    this.#source = source;
    this.#dataStart = Math.ceil(record.length / blockBytes) * blockBytes;
    this.#stamp = stampOf(coverage);
  }

  /** Returns undefined for a block that is not in the cache. */
  findKept(number: number): Buffer | undefined {
    return this.#kept.get(number);
  }

  /** The caller must not change it: others get the same object. */
  async block(number: number): Promise<Buffer> {
    const kept = this.#kept.get(number);
    if (kept !== undefined) return kept;
    const [block] = await this.#read(number, 1);
    const oldest = this.#kept.keys().next();
    if (this.#kept.size >= blocksKept && !oldest.done) this.#kept.delete(oldest.value);
    this.#kept.set(number, block as Buffer);
    return block as Buffer;
  }

  /** Yields consecutive blocks, several per read; they do not enter the cache. */
  async *run(first: number, count: number): AsyncGenerator<Buffer, void> {
    for (let done = 0; done < count; done += blocksPerRead)
      yield* await this.#read(first + done, Math.min(blocksPerRead, count - done));
  }

  async close(): Promise<void> {
    await this.#source.close();
  }

  async #read(first: number, count: number): Promise<Buffer[]> {
    const bytes = await this.#source.read(this.#dataStart + first * blockBytes, count * blockBytes);
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return Array.from({ length: count }, (_, index) => {
      const block = buffer.subarray(index * blockBytes, (index + 1) * blockBytes);
      if (!isSealed(block, first + index, this.#stamp))
        throw new UnusableIndex(this.name, `block ${first + index} is torn, altered, or missing`);
      return block;
    });
  }
}

function headerIn(record: Uint8Array, coverage: Coverage, name: string): ReturnType<typeof getLayout> {
  try {
    return getLayout(record, coverage, name);
  } catch (error) {
    throw new UnusableIndex(name, "its header does not match", error);
  }
}

/** Reads the first line, which is the header. Most headers fit in one block. */
async function findRecordIn(source: IndexSource): Promise<Uint8Array | undefined> {
  for (const length of [blockBytes, headerBytesMax]) {
    const bytes = await source.read(0, length);
    const end = bytes.indexOf(newline);
    if (end >= 0) return bytes.subarray(0, end + 1);
  }
  return undefined;
}

// A run holds lines of the index, sorted by the UTF-8 bytes of their keys. It is written once and
// searched by bisection. Checksums of blocks of lines follow the lines: a flipped bit could hide a
// key.
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { writeBody } from "../../part/body.ts";
import { compareKeys, damagedRun, decodeLine, encodeLine, type IndexLine } from "./index-line.ts";
import { BlockSums, findSums, type RunSums } from "./run-sums.ts";

/**
 * Size of the first read of a range. A line has at most 6,200 bytes: a key of 1,024 bytes, each
 * escaped to 6.
 */
const firstReadBytes = 16 * 1024;
/** Each read is twice as long as the previous one, up to this limit. */
const readBytesMax = 256 * 1024;
/** How many lines of searches are cached: every search begins with the same ones. */
const metMax = 1024;
const lineFeed = 0x0a;

/** A run as a manifest names it. */
export interface RunFacts {
  readonly file: string;
  readonly size: number;
}

/** Writes a new file and returns the size of its lines. `lines` must be sorted. */
export async function writeRun(
  disk: Disk,
  path: string,
  lines: AsyncIterable<readonly IndexLine[]> | Iterable<readonly IndexLine[]>,
): Promise<number> {
  const sums = new BlockSums();
  async function* texts(): AsyncGenerator<Uint8Array> {
    for await (const some of lines) {
      const bytes = Buffer.from(some.map(encodeLine).join(""));
      sums.update(bytes);
      yield bytes;
    }
    if (sums.size > 0) yield sums.end();
  }
  await writeBody(disk, path, texts());
  return sums.size;
}

interface ScannedLine {
  readonly key: string;
  readonly start: number;
  readonly end: number;
}

export class KeyRun implements AsyncDisposable {
  readonly #file: DiskFile;
  readonly #path: string;
  readonly #size: number;
  readonly #met = new Map<number, ScannedLine>();
  #sums: Promise<RunSums | undefined> | undefined;

  constructor(file: DiskFile, path: string, size: number) {
    this.#file = file;
    this.#path = path;
    this.#size = size;
  }

  /** Yields the lines of all keys from `bound` on, in order, in batches. */
  async *from(bound: string): AsyncGenerator<readonly IndexLine[]> {
    let at = await this.#find(bound);
    let rest: Uint8Array = new Uint8Array();
    for (let length = firstReadBytes; at < this.#size; length = Math.min(2 * length, readBytesMax)) {
      const chunk = await this.#read(at, length);
      at += chunk.length;
      const bytes = Buffer.concat([rest, chunk]);
      const end = bytes.lastIndexOf(lineFeed) + 1;
      rest = bytes.subarray(end);
      const lines = this.#linesOf(bytes.subarray(0, end));
      const first = lines.findIndex(({ key }) => compareKeys(key, bound) >= 0);
      if (first >= 0) yield first === 0 ? lines : lines.slice(first);
    }
    if (rest.length > 0) throw damagedRun(this.#path, "its last line has no end");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }

  /** Reads up to `length` bytes of lines. Throws CORRUPT if a checksum does not match. */
  async #read(at: number, length: number): Promise<Uint8Array> {
    const end = Math.min(at + length, this.#size);
    const sums = await (this.#sums ??= findSums(this.#file, this.#path, this.#size));
    const [from, to] = sums === undefined ? [at, end] : sums.blocksAround(at, end);
    const bytes = await this.#file.read(from, to - from);
    if (bytes.length < to - from) throw damagedRun(this.#path, "it ends too early");
    if (sums?.isSound(from, bytes) === false) throw damagedRun(this.#path, "a checksum does not match its lines");
    return bytes.subarray(at - from, end - from);
  }

  /** Returns the start of a line shortly before the first line whose key is not before `bound`. */
  async #find(bound: string): Promise<number> {
    if (bound === "") return 0;
    let low = 0;
    let high = this.#size;
    // The first such line begins between `low` and `high`, or at `high`. One read covers the
    // remaining range.
    while (high - low > firstReadBytes) {
      const middle = Math.floor((low + high) / 2);
      const line = this.#met.get(middle) ?? (await this.#lineAt(middle, low));
      if (compareKeys(line.key, bound) < 0) low = line.end;
      else high = line.start;
    }
    return low;
  }

  /** Returns the line that contains the byte `at`. It does not begin before `low`. */
  async #lineAt(at: number, low: number): Promise<ScannedLine> {
    const from = Math.max(low, at - firstReadBytes / 2);
    const bytes = Buffer.from(await this.#read(from, firstReadBytes));
    const before = at === from ? -1 : bytes.lastIndexOf(lineFeed, at - from - 1);
    const start = before + 1;
    const end = bytes.indexOf(lineFeed, start);
    if (end < 0) throw damagedRun(this.#path, "a line has no end");
    const { key } = decodeLine(bytes.toString("utf8", start, end), this.#path);
    const line = { key, start: from + start, end: from + end + 1 };
    if (this.#met.size < metMax) this.#met.set(at, line);
    return line;
  }

  #linesOf(bytes: Buffer): IndexLine[] {
    if (bytes.length === 0) return [];
    const texts = bytes.toString("utf8", 0, bytes.length - 1).split("\n");
    return texts.map((text) => decodeLine(text, this.#path));
  }
}

// A run: lines of the index, sorted by the UTF-8 bytes of their keys. Written once; read by binary
// search.
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { writeBody } from "../../part/body.ts";
import { compareKeys, damagedRun, decodeLine, encodeLine, type IndexLine } from "./index-line.ts";

/** The first read of a range. A line has at most 6,200 bytes: 1,024 of a key, and 6 for each when it is escaped. */
const firstReadBytes = 16 * 1024;
/** Each read is twice as long as the one before it, up to this. */
const readBytesMax = 256 * 1024;
/** So many lines that a search has met are remembered: the next search begins with the same ones. */
const metMax = 1024;
const lineFeed = 0x0a;

/** A run as a manifest names it. */
export interface RunFacts {
  readonly file: string;
  readonly size: number;
}

/** Writes a new file, and returns its size; `lines` must be sorted. */
export async function writeRun(
  disk: Disk,
  path: string,
  lines: AsyncIterable<readonly IndexLine[]> | Iterable<readonly IndexLine[]>,
): Promise<number> {
  async function* texts(): AsyncGenerator<Uint8Array> {
    for await (const some of lines) yield Buffer.from(some.map(encodeLine).join(""));
  }
  return (await writeBody(disk, path, texts())).size;
}

interface MetLine {
  readonly key: string;
  readonly start: number;
  readonly end: number;
}

export class KeyRun implements AsyncDisposable {
  readonly #file: DiskFile;
  readonly #path: string;
  readonly #size: number;
  readonly #met = new Map<number, MetLine>();

  constructor(file: DiskFile, path: string, size: number) {
    this.#file = file;
    this.#path = path;
    this.#size = size;
  }

  /** The lines of all keys from `bound` on, in order, some at a time. */
  async *from(bound: string): AsyncGenerator<readonly IndexLine[]> {
    let at = await this.#find(bound);
    let rest: Uint8Array = new Uint8Array();
    for (let length = firstReadBytes; at < this.#size; length = Math.min(2 * length, readBytesMax)) {
      const chunk = await this.#file.read(at, Math.min(length, this.#size - at));
      if (chunk.length === 0) throw damagedRun(this.#path, "it ends too early");
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

  /** Where a line begins that is not far before the first one whose key is not before `bound`. */
  async #find(bound: string): Promise<number> {
    if (bound === "") return 0;
    let low = 0;
    let high = this.#size;
    // Between them lies the beginning of that line, or `high` is it. One read gets all of the rest.
    while (high - low > firstReadBytes) {
      const middle = Math.floor((low + high) / 2);
      const line = this.#met.get(middle) ?? (await this.#lineAt(middle, low));
      if (compareKeys(line.key, bound) < 0) low = line.end;
      else high = line.start;
    }
    return low;
  }

  /** The line that `at` lies in, which does not begin before `low`. */
  async #lineAt(at: number, low: number): Promise<MetLine> {
    const from = Math.max(low, at - firstReadBytes / 2);
    const bytes = Buffer.from(await this.#file.read(from, Math.min(firstReadBytes, this.#size - from)));
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

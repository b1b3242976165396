// Reads single lines by their address. Each is checked against the checksum of the previous line.
import type { LineAddress } from "../../index/keys/indexed-line.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import { findLineCrc, lineTailBytes, storedCrcOf, type Line } from "../format/line.ts";
import type { LogFiles } from "../log-files.ts";
import { damaged, lineOf } from "./scan.ts";
import { openSegment, segmentPath } from "../format/segment.ts";

const filesMax = 16;

export interface FoundLine extends Line {
  readonly crc: number;
  /**
   * Positions of events that were already returned. A caller may change its event, so no other caller may get the
   * same objects.
   */
  readonly taken: Set<number>;
}

export class LineReader {
  readonly #files: LogFiles;
  /** By segment number, in order of use. Empty on a share, where an open file may show old bytes. */
  readonly #open = new Map<number, Promise<DiskFile>>();
  /** The line that was read last: callers usually read the events of one line in sequence. */
  #last: { readonly segment: number; readonly offset: number; readonly line: FoundLine } | undefined;

  constructor(files: LogFiles) {
    this.#files = files;
  }

  /** Returns the line to a caller that will return its event at `position`. Throws CORRUPT, like `get`. */
  async take(address: LineAddress, position: number): Promise<FoundLine> {
    for (;;) {
      const line = await this.get(address);
      if (!line.taken.has(position)) {
        line.taken.add(position);
        return line;
      }
      if (this.#last?.line === line) this.#last = undefined;
    }
  }

  /** Throws CORRUPT if another line is found at the address. */
  async get({ segment, offset, bytes, first }: LineAddress): Promise<FoundLine> {
    if (this.#last?.segment === segment && this.#last.offset === offset) return this.#last.line;
    const from = offset - lineTailBytes;
    const both = await this.#read(segment, from, lineTailBytes + bytes);
    const seed = both.length > lineTailBytes ? storedCrcOf(both.subarray(0, lineTailBytes)) : undefined;
    const text = both.subarray(lineTailBytes);
    const crc = seed === undefined || text.length !== bytes ? undefined : findLineCrc(text, seed);
    const path = segmentPath(this.#files.directory, segment);
    if (crc === undefined) throw damaged(path, offset);
    const line = Object.assign(lineOf(path, { offset, bytes: text }), { crc, taken: new Set<number>() });
    // A wrong index must not lead to another line.
    if (line.first !== first) throw damaged(path, offset);
    this.#last = { segment, offset, line };
    return line;
  }

  /** Returns the checksum of the line that ends where this one begins. */
  async seedOf({ segment, offset }: LineAddress): Promise<number> {
    const crc = storedCrcOf(await this.#read(segment, offset - lineTailBytes, lineTailBytes));
    if (crc === undefined) throw damaged(segmentPath(this.#files.directory, segment), offset);
    return crc;
  }

  async close(): Promise<void> {
    const files = [...this.#open.values()];
    this.#open.clear();
    for (const file of files) await (await file.catch(() => undefined))?.close();
  }

  async #read(segment: number, from: number, length: number): Promise<Uint8Array> {
    const { disk, directory } = this.#files;
    if (disk.volume.kind === "local") return await this.#readKept(segment, from, length);
    const file = await openSegment(disk, directory, segment);
    try {
      return await file.read(from, length);
    } finally {
      await file.close();
    }
  }

  async #readKept(segment: number, from: number, length: number): Promise<Uint8Array> {
    for (;;) {
      const file = await this.#file(segment);
      try {
        return await file.read(from, length);
      } catch (error) {
        // Another caller closed the file before this read, to open another one. Retry: it may be open again.
        if (!hasErrno(error, "EBADF") || (await this.#open.get(segment)) === file) throw error;
      }
    }
  }

  async #file(segment: number): Promise<DiskFile> {
    const known = this.#open.get(segment);
    const file = known ?? openSegment(this.#files.disk, this.#files.directory, segment);
    this.#open.delete(segment);
    this.#open.set(segment, file);
    if (this.#open.size > filesMax) {
      const [oldest] = this.#open.keys();
      if (oldest !== undefined) await this.#forget(oldest);
    }
    try {
      return await file;
    } catch (error) {
      this.#open.delete(segment);
      throw error;
    }
  }

  async #forget(segment: number): Promise<void> {
    const file = this.#open.get(segment);
    this.#open.delete(segment);
    // If the open failed, the caller that asked for it got the error.
    await (await file?.catch(() => undefined))?.close();
  }
}

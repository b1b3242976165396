// Reading single lines by their place, each checked against the checksum of the line before it.
import type { LinePlace } from "../../index/indexed-line.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import { findLineCrc, lineTailBytes, storedCrcOf, type Line } from "../format/line.ts";
import type { LogFiles } from "../log-files.ts";
import { damaged, lineOf } from "./scan.ts";
import { openSegment, segmentPath } from "../format/segment.ts";

const filesMax = 16;

export interface FoundLine extends Line {
  readonly crc: number;
  /** Positions whose event was handed out: whoever has it may change it, so nobody else gets the same objects. */
  readonly taken: Set<number>;
}

export class LineReader {
  readonly #place: LogFiles;
  /** By segment, the latest used last. Only on a local disk: on a share a client believes what it has once read. */
  readonly #files = new Map<number, Promise<DiskFile>>();
  /** The line that was read last: the events of one line are mostly asked for one after the other. */
  #last: { readonly segment: number; readonly offset: number; readonly line: FoundLine } | undefined;

  constructor(place: LogFiles) {
    this.#place = place;
  }

  /** The line for somebody who hands out the event at `position`. CORRUPT, as `get`. */
  async take(place: LinePlace, position: number): Promise<FoundLine> {
    for (;;) {
      const line = await this.get(place);
      if (!line.taken.has(position)) {
        line.taken.add(position);
        return line;
      }
      if (this.#last?.line === line) this.#last = undefined;
    }
  }

  /** CORRUPT when what stands there is not what was published. */
  async get({ segment, offset, bytes, first }: LinePlace): Promise<FoundLine> {
    if (this.#last?.segment === segment && this.#last.offset === offset) return this.#last.line;
    const from = offset - lineTailBytes;
    const both = await this.#read(segment, from, lineTailBytes + bytes);
    const seed = both.length > lineTailBytes ? storedCrcOf(both.subarray(0, lineTailBytes)) : undefined;
    const text = both.subarray(lineTailBytes);
    const crc = seed === undefined || text.length !== bytes ? undefined : findLineCrc(text, seed);
    const path = segmentPath(this.#place.directory, segment);
    if (crc === undefined) throw damaged(path, offset);
    const line = Object.assign(lineOf(path, { offset, bytes: text }), { crc, taken: new Set<number>() });
    // An index never changes an answer, so a wrong one must not lead to another line.
    if (line.first !== first) throw damaged(path, offset);
    this.#last = { segment, offset, line };
    return line;
  }

  /** The checksum of the line that ends where this one begins. */
  async seedOf({ segment, offset }: LinePlace): Promise<number> {
    const crc = storedCrcOf(await this.#read(segment, offset - lineTailBytes, lineTailBytes));
    if (crc === undefined) throw damaged(segmentPath(this.#place.directory, segment), offset);
    return crc;
  }

  async close(): Promise<void> {
    const files = [...this.#files.values()];
    this.#files.clear();
    for (const file of files) await (await file.catch(() => undefined))?.close();
  }

  async #read(segment: number, from: number, length: number): Promise<Uint8Array> {
    const { disk, directory } = this.#place;
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
        // Closed by somebody who needed the room, between our getting it and our reading; perhaps it is open again.
        if (!hasErrno(error, "EBADF") || (await this.#files.get(segment)) === file) throw error;
      }
    }
  }

  async #file(segment: number): Promise<DiskFile> {
    const known = this.#files.get(segment);
    const file = known ?? openSegment(this.#place.disk, this.#place.directory, segment);
    this.#files.delete(segment);
    this.#files.set(segment, file);
    if (this.#files.size > filesMax) {
      const [oldest] = this.#files.keys();
      if (oldest !== undefined) await this.#forget(oldest);
    }
    try {
      return await file;
    } catch (error) {
      this.#files.delete(segment);
      throw error;
    }
  }

  async #forget(segment: number): Promise<void> {
    const file = this.#files.get(segment);
    this.#files.delete(segment);
    // One that could not be opened was told to whoever wanted it.
    await (await file?.catch(() => undefined))?.close();
  }
}

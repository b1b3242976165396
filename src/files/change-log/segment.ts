// A segment: one file with the records of a full block of changes. Each line has the number, a
// checksum and the record, so a damaged line affects only its own change.
import { checksumOf } from "../../format/checksum.ts";
import { slotName } from "../../format/name.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { FilesLayout } from "../tree/layout.ts";

/** Enough for a thousand records with the longest paths. */
export const segmentBytesMax: number = 64 * 1024 * 1024;

const linePattern = /^([0-9]{10}) ([0-9a-f]{8}) (.*)$/s;

/**
 * Returns the line of a change. `record` is the content of the change's file, which is one line.
 */
export function segmentLine(number: number, record: Uint8Array): string {
  const text = Buffer.from(record).toString();
  return `${slotName(number)} ${checksumOf(`${slotName(number)} ${text}`)} ${text}`;
}

/** Returns the readable lines by number. */
export function recordsIn(segment: Uint8Array): Map<number, Uint8Array> {
  const records = new Map<number, Uint8Array>();
  for (const line of Buffer.from(segment).toString().split("\n")) {
    const [, name = "", checksum, record = ""] = linePattern.exec(line) ?? [];
    if (checksumOf(`${name} ${record}\n`) === checksum) records.set(Number(name), Buffer.from(`${record}\n`));
  }
  return records;
}

/** Reads segments. It remembers the last one, because changes are read in order. */
export class Segments {
  readonly #disk: Disk;
  readonly #layout: FilesLayout;
  #last: { readonly block: number; readonly records: ReadonlyMap<number, Uint8Array> | undefined } | undefined;

  constructor(disk: Disk, layout: FilesLayout) {
    this.#disk = disk;
    this.#layout = layout;
  }

  /**
   * Returns the records of the block that contains `number`; undefined if the block is not folded.
   * Once a segment exists, it stays.
   */
  async find(number: number): Promise<ReadonlyMap<number, Uint8Array> | undefined> {
    const block = this.#layout.blockOf(number);
    // A damaged line may have been repaired since.
    if (this.#last?.block === block && this.#last.records?.has(number)) return this.#last.records;
    try {
      const bytes = await this.#disk.readFile(this.#layout.changeSegment(number), segmentBytesMax);
      this.#last = { block, records: recordsIn(bytes) };
    } catch (error) {
      if (hasErrno(error, "EISDIR", "EFBIG", "ENXIO", "ELOOP")) return new Map();
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
      this.#last = { block, records: undefined };
    }
    return this.#last.records;
  }

  /**
   * Like `find`, but does not read again for the block that was read last, even if it was not
   * folded then.
   */
  async findUnlessSeen(number: number): Promise<ReadonlyMap<number, Uint8Array> | undefined> {
    return this.#last?.block === this.#layout.blockOf(number) ? this.#last.records : await this.find(number);
  }

  /** Like `find`, but on a share asks the server before it reports an absence. */
  async findSurely(number: number): Promise<ReadonlyMap<number, Uint8Array> | undefined> {
    const found = await this.find(number);
    if (found !== undefined || this.#disk.volume.kind === "local") return found;
    try {
      await this.#disk.look(this.#layout.changeSegment(number));
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
      throw error;
    }
    return await this.find(number);
  }
}

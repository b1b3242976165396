// The head of a log on one machine: one small record, written in place after each sync. It tells all processes of this boot how far the log is durable.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { countOf, flagOf, objectOf, textOf } from "../../format/decoding.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { decodeTip, storedTip, type StoredTip, type Tip } from "./tip.ts";

/** Always all of them: a shorter record over a longer one would leave a mixture. Less than a page, so the kernel writes it in one go. */
const headBytes = 512;
/** A reader may meet a write half done; the next look sees it whole. */
const looksMax = 20;

export interface Head {
  readonly boot: string;
  /** What it tells of was synced before: then it holds also after a restart, as the least that must be there. */
  readonly isSynced: boolean;
  readonly tip: Tip;
  /** Where the room behind the tip ends that was written in this boot; the length of the tip when there is none. */
  readonly room: number;
}

interface StoredHead extends Omit<Head, "tip"> {
  readonly tip: StoredTip;
}

const headKind: RecordKind<StoredHead> = {
  kind: "head",
  decode: (value) => {
    const { boot, isSynced, tip, room } = objectOf(value);
    return {
      boot: textOf(boot),
      isSynced: flagOf(isSynced),
      tip: storedTip(decodeTip(tip)),
      room: countOf(room),
    };
  },
};

export class HeadFile {
  readonly #disk: Disk;
  readonly #path: string;
  #file: DiskFile | undefined;
  #isReadOnly = false;
  /** What was last read or written, and what it says: an append looks twice, and mostly nobody else has written. */
  #last: { readonly bytes: Uint8Array; readonly head: Head } | undefined;

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.#path = path;
  }

  /** Undefined when there is none, or none that can be read: a power cut may have taken or torn it. NEWER_FORMAT. */
  async find(): Promise<Head | undefined> {
    for (let look = 0; look < looksMax; look++) {
      try {
        const bytes = await (await this.#open()).read(0, headBytes);
        if (this.#last === undefined || Buffer.compare(bytes, this.#last.bytes) !== 0)
          this.#last = { bytes, head: this.#decode(bytes) };
        return this.#last.head;
      } catch (error) {
        if (hasErrno(error, "ENOENT")) return undefined;
        if (!isHoldfastError(error, "CORRUPT")) throw error;
      }
    }
    return undefined;
  }

  /** Only with the gate in hand. Not synced: after a power cut what the segments say counts. */
  async write(head: Head): Promise<void> {
    const { boot, isSynced, tip, room } = head;
    const record = encodeRecord(headKind, { boot, isSynced, tip: storedTip(tip), room }, { isChecked: true });
    if (record.length > headBytes)
      throw holdfastError("TOO_LARGE", "The head does not fit.", { limit: headBytes, actual: record.length });
    const bytes = Buffer.alloc(headBytes, " ");
    bytes.set(record);
    // So that `cat` ends its line.
    bytes[headBytes - 1] = 10;
    // Opened before it could be written, as on a disk that was mounted anew since.
    if (this.#isReadOnly) await this.close();
    await (await this.#open()).write(0, bytes);
    this.#last = { bytes, head };
  }

  /** Makes an empty one, which reads as none. */
  async ensure(): Promise<void> {
    try {
      await this.#disk.createFile(this.#path, new Uint8Array(), { sync: false });
    } catch (error) {
      if (!hasErrno(error, "EEXIST")) throw error;
    }
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    this.#isReadOnly = false;
    await file?.close();
  }

  #decode(bytes: Uint8Array): Head {
    const end = bytes.indexOf(10) + 1;
    const { boot, isSynced, tip, room } = decodeRecord(headKind, bytes.subarray(0, end), this.#path);
    return { boot, isSynced, tip: decodeTip(tip), room };
  }

  async #open(): Promise<DiskFile> {
    if (this.#file !== undefined) return this.#file;
    let file: DiskFile;
    try {
      file = await this.#disk.open(this.#path, "write");
    } catch (error) {
      // Who may only read can still read.
      if (!isHoldfastError(error, "NO_PERMISSION")) throw error;
      file = await this.#disk.open(this.#path, "read");
      this.#isReadOnly = true;
    }
    return (this.#file ??= file);
  }
}

// The head of a log on one machine: a small record, written in place after each sync. It tells all
// processes of this boot how far the log is published.
import { parentOf, syncNames } from "../../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { countOf, flagOf, objectOf, textOf } from "../../../format/decoding.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../../format/record.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../../ports/disk.ts";
import { decodeTip, storedTip, type StoredTip, type Tip } from "../format/tip.ts";

/**
 * Always all of them: a shorter record over a longer one would leave a mixture. Less than a page:
 * the kernel writes it at once.
 */
const headBytes = 512;
/** A reader may see half of a write; the next look sees all of it. */
const looksMax = 20;

export interface Head {
  readonly boot: string;
  /** The lines were synced before: then the tip also holds after a restart, as a lower limit. */
  readonly isSynced: boolean;
  /**
   * The lock file by which writers come into this segment; empty in heads of releases that did not
   * record it.
   */
  readonly lock: string;
  readonly tip: Tip;
  /**
   * Where the room behind the tip ends, if it was written in this boot; else the length of the tip.
   */
  readonly room: number;
}

interface OpenHead {
  readonly file: DiskFile;
  readonly identity: string;
  readonly isReadOnly: boolean;
}

interface StoredHead extends Omit<Head, "tip"> {
  readonly tip: StoredTip;
}

const headKind: RecordKind<StoredHead> = {
  kind: "head",
  decode: (value) => {
    const { boot, isSynced, lock = "", tip, room } = objectOf(value);
    return {
      boot: textOf(boot),
      isSynced: flagOf(isSynced),
      lock: textOf(lock),
      tip: storedTip(decodeTip(tip)),
      room: countOf(room),
    };
  },
};

export class HeadFile {
  readonly #disk: Disk;
  readonly path: string;
  #open: OpenHead | undefined;
  /**
   * The head that was read or written last: mostly it is unchanged, and need not be decoded again.
   */
  #last: { readonly bytes: Uint8Array; readonly head: Head } | undefined;

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.path = path;
  }

  /** Undefined for a head that is missing, or torn by a power cut. NEWER_FORMAT. */
  async find(): Promise<Head | undefined> {
    await this.#forgetReplaced();
    for (let look = 0; look < looksMax; look++) {
      try {
        const bytes = await this.#with((file) => file.read(0, headBytes));
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

  /** Only under the gate. Not synced: after a power cut the segments decide. */
  async write(head: Head): Promise<void> {
    const { boot, isSynced, lock, tip, room } = head;
    const record = encodeRecord(headKind, { boot, isSynced, lock, tip: storedTip(tip), room }, { isChecked: true });
    if (record.length > headBytes)
      throw holdfastError("TOO_LARGE", "The head does not fit.", { limit: headBytes, actual: record.length });
    const bytes = Buffer.alloc(headBytes, " ");
    bytes.set(record);
    // So that `cat` ends its line.
    bytes[headBytes - 1] = 10;
    // It could not be written when it was opened, as on a disk that was mounted again since.
    if (this.#open?.isReadOnly) await this.close();
    await this.#with((file) => file.write(0, bytes));
    this.#last = { bytes, head };
  }

  /**
   * Creates an empty one, which reads as none. True: there was none, so the first head has to be
   * synced.
   */
  async ensure(): Promise<boolean> {
    try {
      await this.#disk.createFile(this.path, new Uint8Array(), { sync: false });
      return true;
    } catch (error) {
      if (!hasErrno(error, "EEXIST")) throw error;
      return false;
    }
  }

  /** The content and the name: from then on no power cut takes the head away. */
  async sync(): Promise<void> {
    await this.#with((file) => file.sync());
    await syncNames(this.#disk, parentOf(this.path));
  }

  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    await open?.file.close();
  }

  #decode(bytes: Uint8Array): Head {
    const end = bytes.indexOf(10) + 1;
    const { tip, ...head } = decodeRecord(headKind, bytes.subarray(0, end), this.path);
    return { ...head, tip: decodeTip(tip) };
  }

  /** Looks up the name: no reader finds what is written to a file that was removed or replaced. */
  async #forgetReplaced(): Promise<void> {
    const open = this.#open;
    if (open === undefined) return;
    const found = await this.#disk.findStat(this.path);
    if (found?.identity === open.identity || this.#open !== open) return;
    this.#open = undefined;
    await open.file.close();
  }

  async #with<T>(use: (file: DiskFile) => Promise<T>): Promise<T> {
    for (;;) {
      const { file } = this.#open ?? (await this.#openAnew());
      try {
        return await use(file);
      } catch (error) {
        // Another caller of this process found that the file was replaced, and closed it.
        if (!hasErrno(error, "EBADF") || this.#open?.file === file) throw error;
      }
    }
  }

  async #openAnew(): Promise<OpenHead> {
    let file: DiskFile;
    let isReadOnly = false;
    try {
      file = await this.#disk.open(this.path, "write");
    } catch (error) {
      // A process without the right to write can still read.
      if (!isHoldfastError(error, "NO_PERMISSION")) throw error;
      file = await this.#disk.open(this.path, "read");
      isReadOnly = true;
    }
    const opened = { file, identity: (await file.stat()).identity, isReadOnly };
    // Another caller of this process was faster.
    if (this.#open !== undefined) await file.close();
    return (this.#open ??= opened);
  }
}

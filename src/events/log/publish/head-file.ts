// The head of a log on one machine: a small record, written in place after each sync. All processes of this boot read
// from it how far the log is published.
import { parentOf, syncNames } from "../../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { countOf, flagOf, objectOf, textOf } from "../../../format/decoding.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../../format/record.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../../ports/disk.ts";
import { decodeTip, storedTip, type StoredTip, type Tip } from "../format/tip.ts";

/**
 * Every record fills it: a shorter record over a longer one would leave a mixture. It is smaller than a page, which
 * the kernel writes at once.
 */
const headBytes = 512;
/** A reader may see half of a write. The next read sees all of it. */
const looksMax = 20;

export interface Head {
  readonly boot: string;
  /**
   * True if the lines were synced before the head was written. Then, after a restart, the log has at least these
   * lines.
   */
  readonly isSynced: boolean;
  /**
   * The lock file under which writers enter this segment. Empty in heads of older releases, which did not record it.
   */
  readonly lock: string;
  readonly tip: Tip;
  /** The end of the room after the tip if this boot wrote it, otherwise the end of the tip. */
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
  /** The head that was read or written last. It has usually not changed, so it need not be decoded again. */
  #last: { readonly bytes: Uint8Array; readonly head: Head } | undefined;

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.path = path;
  }

  /** Returns undefined for a head that is missing, or torn by a power cut. Throws NEWER_FORMAT. */
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

  /** Call it only under the gate. Not synced: after a power cut the segments show how far the log goes. */
  async write(head: Head): Promise<void> {
    const { boot, isSynced, lock, tip, room } = head;
    const record = encodeRecord(headKind, { boot, isSynced, lock, tip: storedTip(tip), room }, { isChecked: true });
    if (record.length > headBytes)
      throw holdfastError("TOO_LARGE", "The head does not fit.", { limit: headBytes, actual: record.length });
    const bytes = Buffer.alloc(headBytes, " ");
    bytes.set(record);
    // Ends the output of `cat` with a newline.
    bytes[headBytes - 1] = 10;
    // The file was opened read-only, for example before the disk was remounted.
    if (this.#open?.isReadOnly) await this.close();
    await this.#with((file) => file.write(0, bytes));
    this.#last = { bytes, head };
  }

  /**
   * Creates an empty file, which reads as no head, unless one exists. Returns true if it created one: the caller must
   * then sync the first head.
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

  /** Syncs the content and the name: from then on no power cut can remove the head. */
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

  /** Closes the file if its name is gone or belongs to another file: no reader would find what is written to it. */
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
      // A process without write permission can still read.
      if (!isHoldfastError(error, "NO_PERMISSION")) throw error;
      file = await this.#disk.open(this.path, "read");
      isReadOnly = true;
    }
    const opened = { file, identity: (await file.stat()).identity, isReadOnly };
    // Another caller of this process has opened it meanwhile.
    if (this.#open !== undefined) await file.close();
    return (this.#open ??= opened);
  }
}

// Stamps: a stamp identifies a content by 128 bits of its SHA-256. It is remembered as long as the
// file system shows that the file has not changed. Size and modification time alone prove nothing,
// because programs can set both.
import { createHash } from "node:crypto";
import type { Clock } from "../../ports/clock.ts";
import { diskError } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import { sha256Of } from "../../format/checksum.ts";

/** Two changes may get the same ctime: file systems count in steps of up to two seconds. */
const stepMs = 2_000;
const rememberedMax = 100_000;
/** Bytes per read of the disk. */
const chunkBytes = 256 * 1024;
/** A file that changes while it is read is read again; one that keeps changing gets the stamp of the last reading. */
const readingsMax = 3;
const digits = 32;

/** A file as it was when it was read. */
export interface StampedFile {
  readonly stamp: string;
  readonly stat: FileStat;
}

export function stampOf(bytes: Uint8Array): string {
  return stampOfDigest(sha256Of(bytes));
}

/** Makes a stamp from a SHA-256 in hex digits. */
export function stampOfDigest(sha256: string): string {
  return sha256.slice(0, digits);
}

export class Stamps {
  readonly #disk: Disk;
  readonly #clock: Pick<Clock, "wallMs">;
  /** Stamps by the identity of the file, in the order in which they were remembered. */
  readonly #remembered = new Map<string, StampedFile>();

  constructor(disk: Disk, clock: Pick<Clock, "wallMs">) {
    this.#disk = disk;
    this.#clock = clock;
  }

  /** Returns the stamp if it is known without reading the file. */
  find(stat: FileStat): string | undefined {
    const known = this.#remembered.get(stat.identity);
    return known !== undefined && isSame(known.stat, stat) ? known.stamp : undefined;
  }

  /** Returns the stamp of the file at `path`, which is absolute. Fails like the disk. */
  async get(path: string): Promise<StampedFile> {
    const file = await this.#disk.open(path, "read");
    try {
      for (let reading = 1; ; reading++) {
        const stat = await file.stat();
        if (stat.kind !== "file") throw diskError(stat.kind === "directory" ? "EISDIR" : "ENXIO", "read", path);
        const known = this.find(stat);
        if (known !== undefined) return { stamp: known, stat };
        // Checked before the first byte is read: a later change gets a later ctime.
        const isSettled = this.#isSettled(stat);
        const hash = createHash("sha256");
        for (let offset = 0; ;) {
          // Request one byte more than expected, so that a short read is the last one.
          const wanted = offset > stat.size ? chunkBytes : Math.min(chunkBytes, stat.size - offset + 1);
          const chunk = await file.read(offset, wanted);
          hash.update(chunk);
          offset += chunk.length;
          if (chunk.length < wanted) break;
        }
        const stamped = { stamp: stampOfDigest(hash.digest("hex")), stat: await file.stat() };
        if (isSame(stat, stamped.stat)) this.#remember(stamped, isSettled);
        else if (reading < readingsMax) continue;
        return stamped;
      }
    } finally {
      await file.close();
    }
  }

  /**
   * True on a local disk for a file that has not changed for longer than a step of its times. On a
   * network mount, the ctime proves nothing: SMB servers invent it, and every search links the
   * file, which changes it. There, each call reads the content.
   */
  #isSettled({ ctimeMs }: FileStat): boolean {
    return this.#disk.volume.kind === "local" && this.#clock.wallMs() - ctimeMs >= stepMs;
  }

  #remember(stamped: StampedFile, isSettled: boolean): void {
    const { identity } = stamped.stat;
    this.#remembered.delete(identity);
    if (!isSettled) return;
    this.#remembered.set(identity, stamped);
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size <= rememberedMax) break;
      this.#remembered.delete(oldest);
    }
  }
}

function isSame(one: FileStat, other: FileStat): boolean {
  return (
    one.identity === other.identity &&
    one.size === other.size &&
    one.mtimeMs === other.mtimeMs &&
    one.ctimeMs === other.ctimeMs
  );
}

// Stamps: the identity of a content, 128 bits of its SHA-256. A stamp is remembered for a file that has not changed;
// size and time alone never stand for a content.
import { createHash } from "node:crypto";
import type { ServerTime } from "../../durable/liveness/server-time.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";

/** Two writes of a younger file may have one time: file systems count in steps of up to two seconds. */
const settledMs = 2_000;
const rememberedMax = 100_000;
/** One read of the disk. */
const chunkBytes = 256 * 1024;
/** A file that changes while it is read is read again; one that never rests has the stamp of the last reading. */
const readingsMax = 3;
const digits = 32;

/** A file as it was when it was read. */
export interface Stamped {
  readonly stamp: string;
  readonly stat: FileStat;
}

export function stampOf(bytes: Uint8Array): string {
  return stampOfDigest(createHash("sha256").update(bytes).digest("hex"));
}

/** Of a SHA-256 in hex digits. */
export function stampOfDigest(sha256: string): string {
  return sha256.slice(0, digits);
}

export class Stamps {
  readonly #disk: Disk;
  readonly #time: Pick<ServerTime, "nowMs">;
  /** By identity, in the order in which they were remembered. */
  readonly #remembered = new Map<string, Stamped>();

  constructor(disk: Disk, time: Pick<ServerTime, "nowMs">) {
    this.#disk = disk;
    this.#time = time;
  }

  /** What is known without reading the file. */
  find(stat: FileStat): string | undefined {
    const known = this.#remembered.get(stat.identity);
    return known !== undefined && isSame(known.stat, stat) ? known.stamp : undefined;
  }

  /** Of the file at `path`, which is absolute. Fails as the disk does. */
  async get(path: string): Promise<Stamped> {
    const file = await this.#disk.open(path, "read");
    try {
      for (let reading = 1; ; reading++) {
        const stat = await file.stat();
        const known = this.find(stat);
        if (known !== undefined) return { stamp: known, stat };
        const hash = createHash("sha256");
        for (let offset = 0; ;) {
          // One byte more than it should have: so the read that gives the last one shows that it is the last.
          const wanted = offset > stat.size ? chunkBytes : Math.min(chunkBytes, stat.size - offset + 1);
          const chunk = await file.read(offset, wanted);
          hash.update(chunk);
          offset += chunk.length;
          if (chunk.length < wanted) break;
        }
        const stamped = { stamp: stampOfDigest(hash.digest("hex")), stat: await file.stat() };
        if (isSame(stat, stamped.stat)) await this.#remember(stamped);
        else if (reading < readingsMax) continue;
        return stamped;
      }
    } finally {
      await file.close();
    }
  }

  async #remember(stamped: Stamped): Promise<void> {
    const { identity, mtimeMs } = stamped.stat;
    this.#remembered.delete(identity);
    if ((await this.#time.nowMs()) - mtimeMs < settledMs) return;
    this.#remembered.set(identity, stamped);
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size <= rememberedMax) break;
      this.#remembered.delete(oldest);
    }
  }
}

function isSame(one: FileStat, other: FileStat): boolean {
  return one.identity === other.identity && one.size === other.size && one.mtimeMs === other.mtimeMs;
}

// The age of a file by its server's clock. It compares two stamps of one server, never the clocks
// of two machines.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";

/** The server's time, read from the stamp of a probe: a file that this process just made. */
export class ServerClock {
  readonly staging: Staging;
  readonly #probe: string;

  constructor(staging: Staging, probe: string) {
    this.staging = staging;
    this.#probe = probe;
  }

  /** Returns how long ago `path` was written; undefined if it does not exist, 0 if its age is unknown. */
  async findAgeMs(path: string): Promise<number | undefined> {
    const stampMs = await findStampMs(this.staging.disk, path);
    return stampMs === undefined ? undefined : await this.ageMsOf(stampMs);
  }

  /** Returns the age of a stamp of this server; 0 if it is unknown. */
  async ageMsOf(stampMs: number): Promise<number> {
    return ((await this.findNowMs()) ?? stampMs) - stampMs;
  }

  /** Undefined without the probe: this process was swept, and its next request reports that. */
  async findNowMs(): Promise<number | undefined> {
    return await findStampMs(this.staging.disk, this.#probe);
  }
}

export async function withServerClock<T>(staging: Staging, action: (clock: ServerClock) => Promise<T>): Promise<T> {
  const probe = await stage(staging, new Uint8Array(), { sync: false });
  try {
    return await action(new ServerClock(staging, probe));
  } finally {
    await discard(staging, probe);
  }
}

/** Undefined if it does not exist. */
async function findStampMs(disk: Disk, path: string): Promise<number | undefined> {
  try {
    // Use an open file: a plain stat is answered from a cache that may be a minute old.
    const file = await disk.open(path, "read");
    try {
      return (await file.stat()).mtimeMs;
    } finally {
      await file.close();
    }
  } catch (error) {
    // ESTALE: the file was removed between open and stat.
    if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
    throw error;
  }
}

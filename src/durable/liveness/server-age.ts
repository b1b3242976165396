// How old a file is by the clock of its server. Two stamps of one server are compared, never the
// clocks of two machines.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";

/**
 * The time of the server, as the stamp of a probe shows it: a file that this process made just now.
 */
export class ServerClock {
  readonly staging: Staging;
  readonly #probe: string;

  constructor(staging: Staging, probe: string) {
    this.staging = staging;
    this.#probe = probe;
  }

  /**
   * How long ago `path` was written; undefined when it is not there, 0 when its age cannot be told.
   */
  async findAgeMs(path: string): Promise<number | undefined> {
    const stampMs = await findStampMs(this.staging.disk, path);
    return stampMs === undefined ? undefined : await this.ageMsOf(stampMs);
  }

  /** The age of a stamp of this server; 0 when it cannot be told. */
  async ageMsOf(stampMs: number): Promise<number> {
    return ((await this.findNowMs()) ?? stampMs) - stampMs;
  }

  /** Undefined without the probe: this process was swept, and whatever it asks for next says so. */
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

/** Undefined when it is not there. */
async function findStampMs(disk: Disk, path: string): Promise<number | undefined> {
  try {
    // Through an open: a plain stat is answered from a cache that may be a minute old.
    const file = await disk.open(path, "read");
    try {
      return (await file.stat()).mtimeMs;
    } finally {
      await file.close();
    }
  } catch (error) {
    // ESTALE: it was removed between the open and the stat.
    if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
    throw error;
  }
}

// When a file was last written, by the clock of its server.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";

/** Undefined when it is not there. */
export async function findStampMs(disk: Disk, path: string): Promise<number | undefined> {
  try {
    // Through an open, because a plain stat is answered from a cache that may be a minute old.
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

/** With a file of now, to compare stamps with. */
export async function withProbe<T>(staging: Staging, action: (probe: string) => Promise<T>): Promise<T> {
  const probe = await stage(staging, new Uint8Array(), { sync: false });
  try {
    return await action(probe);
  } finally {
    await discard(staging, probe);
  }
}

// Whether nobody came for a hold that was to be handed over: by two stamps of the server, so that no clock of a machine decides.
import { withProbe } from "../durable/stamp.ts";
import type { Staging } from "../durable/staging.ts";
import { hasErrno } from "../ports/disk-error.ts";

/** `file`: made when the hold was offered, and removed when it was taken. */
export async function isLapsed(staging: Staging, file: string, expiresMs: number): Promise<boolean> {
  const { disk } = staging;
  return await withProbe(staging, async (probe) => {
    try {
      const thenMs = (await disk.stat(file)).mtimeMs;
      return (await disk.stat(probe)).mtimeMs - thenMs > expiresMs;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return true;
      throw error;
    }
  });
}

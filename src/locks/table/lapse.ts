// Whether an offered hold was taken by no process in time: by two stamps of the server, so that no clock of a machine decides.
import { findStampMs, withProbe } from "../../durable/liveness/server-age.ts";
import type { Staging } from "../../durable/publish/staging.ts";

/** `file`: made when the hold was offered, under a name of that offer alone, and removed when it was taken. */
export async function isLapsed(staging: Staging, file: string, expiresMs: number): Promise<boolean> {
  return await withProbe(staging, async (probe) => {
    const thenMs = await findStampMs(staging.disk, file);
    if (thenMs === undefined) return true;
    const nowMs = await findStampMs(staging.disk, probe);
    // Without a probe there is no now: our own directory was swept, and whatever is asked next says so.
    return nowMs !== undefined && nowMs - thenMs > expiresMs;
  });
}

// Whether an offered hold was taken by no process in time: by two stamps of the server, so that no clock of a machine decides.
import { withServerClock } from "../../durable/liveness/server-age.ts";
import type { Staging } from "../../durable/publish/staging.ts";

/** `file`: made when the hold was offered, under a name of that offer alone, and removed when it was taken. */
export async function isLapsed(staging: Staging, file: string, expiresMs: number): Promise<boolean> {
  return await withServerClock(staging, async (clock) => {
    const ageMs = await clock.findAgeMs(file);
    return ageMs === undefined || ageMs > expiresMs;
  });
}

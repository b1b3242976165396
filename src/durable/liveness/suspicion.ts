// Suspicion: the heartbeat of one who looked dead by its stamp, kept for whoever comes next. The clock of the server may have been set ahead, and then all the living look old until
// they beat again; so a stamp counts only with a silence that somebody has seen. Many come to a share only for a moment: what one of them saw, another can confirm.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ground } from "./ground.ts";
import type { HolderRecord } from "./holder-record.ts";
import { replace } from "../publish/publish.ts";
import { findStampMs } from "./server-age.ts";
import { beatBytesMax } from "./liveness-judge.ts";

/** More than the quarter after which a living holder beats. */
const silentPart = 3 / 8;

type Site = Pick<Ground, "ports" | "layout" | "staging">;

/**
 * Whether `beat`, read after `probe` was made, is what was suspected before, for so much of the lease by the stamps of the server; else it is suspected from now on. Whoever is set
 * ahead twice within a beat would deceive it, and nothing less.
 */
export async function isConfirmed(site: Site, holder: HolderRecord, beat: string, probe: string): Promise<boolean> {
  const { disk } = site.ports;
  const path = site.layout.suspicion(holder.id);
  if ((await findBytes(site, path)) !== beat) {
    await replace(site.staging, path, Buffer.from(beat, "latin1"), { sync: false });
    return false;
  }
  // Somebody may have replaced it since: then it is younger.
  const [sinceMs, nowMs] = [await findStampMs(disk, path), await findStampMs(disk, probe)];
  return sinceMs !== undefined && nowMs !== undefined && nowMs - sinceMs >= silentPart * holder.leaseMs;
}

async function findBytes({ ports: { disk } }: Site, path: string): Promise<string | undefined> {
  try {
    return Buffer.from(await disk.readFile(path, beatBytesMax)).toString("latin1");
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE", "EFBIG")) return undefined;
    throw error;
  }
}

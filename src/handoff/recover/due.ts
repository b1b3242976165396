// What is due: delayed tickets come to where consumers look, parked claims go back.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { findMinuteMs } from "../box/layout.ts";
import { priorityDefault, ticketKind } from "../model/manifest.ts";
import { findTicketName, unrankedOf } from "../model/ticket-name.ts";
import { enter } from "../publish/enter.ts";

/** A directory that is still used by a clock that is behind is not removed. */
const keepMs = 120_000;

/** Any number of processes may do it at once: of each ticket one moves it. Returns when the next one is due, as far as it is known. */
export async function enterDue(box: Box): Promise<number> {
  const nowMs = await box.nowMs();
  let nextMs = Infinity;
  for (const minute of (await namesIn(box, box.layout.delayed)).sort()) {
    const startMs = findMinuteMs(minute);
    if (startMs === undefined) continue;
    if (startMs > nowMs) return Math.min(nextMs, startMs);
    const directory = `${box.layout.delayed}/${minute}`;
    const next = await enterDueIn(box, directory, nowMs);
    nextMs = Math.min(nextMs, next);
    if (next === Infinity && startMs + keepMs < nowMs) await box.disk.rmdir(directory).catch(() => undefined);
  }
  return Math.min(nextMs, await enterDueIn(box, box.layout.parked, nowMs));
}

async function enterDueIn(box: Box, directory: string, nowMs: number): Promise<number> {
  let nextMs = Infinity;
  for (const text of await namesIn(box, directory)) {
    const name = findTicketName(text);
    if (name?.rank === undefined) continue;
    if (name.rank > nowMs) nextMs = Math.min(nextMs, name.rank);
    else {
      const path = `${directory}/${text}`;
      await enter(box, path, unrankedOf(name), await destinationOf(box, path));
    }
  }
  return nextMs;
}

/** A damaged ticket goes where every other one goes: the process that claims it sees what is wrong. */
async function destinationOf(box: Box, path: string): Promise<{ readonly priority: number; readonly group?: string }> {
  try {
    const ticket = await findRecord(box.disk, ticketKind, path);
    if (ticket === undefined) return { priority: priorityDefault };
    const { priority, group } = ticket.manifest;
    return group === undefined ? { priority } : { priority, group };
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT", "NEWER_FORMAT") && !hasErrno(error, "ESTALE")) throw error;
    return { priority: priorityDefault };
  }
}

async function namesIn(box: Box, directory: string): Promise<string[]> {
  try {
    return await box.disk.list(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return [];
    throw error;
  }
}

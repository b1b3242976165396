// Recovery: returns the tickets of dead processes.
//
// For each dead process, in this order: its session is settled, so nothing can be staged or linked
// from its temp directory; its entries in the box's `staging` are removed one by one; then its
// tickets return. A worker that only slept therefore cannot commit once its ticket is back: the
// files it would commit are gone.
import { hasErrno } from "../../ports/disk-error.ts";
import { signal } from "../../telemetry/signals.ts";
import { isId, randomName } from "../../format/id.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { isScanned } from "../consume/scan-gate.ts";
import { priorityMax } from "../model/manifest.ts";
import { attemptOf, findTicketName, unrankedOf, type TicketName } from "../model/ticket-name.ts";
import { emptyTrash } from "../operate/trash.ts";
import { enter } from "../publish/enter.ts";
import { findReadableTicket, settleTicket } from "../publish/staged.ts";
import { noteLost } from "./lost-note.ts";

/** How often a directory is emptied in one run. If entries still arrive, the next run continues. */
const roundsMax = 5;

/**
 * Recovers all dead holders. Returns how many tickets returned to the queue. Any number of
 * processes may run it at once.
 */
export async function returnDeadTickets(box: Box): Promise<number> {
  const { processings, stagings } = box.layout;
  const own = (await box.ground.session()).holder.id;
  const holders = new Set([...(await box.names(processings)), ...(await box.names(stagings))]);
  let returned = 0;
  for (const holder of holders) {
    if (!isId(holder) || holder === own || !(await box.ground.settle(holder))) continue;
    // It may have claimed during a scan, which must find its tickets where they are. The next run returns them.
    if (await isScanned(box)) continue;
    // A ticket that cannot be read or moved stays with its holder, which `verify` reports. The
    // other holders are recovered. What is in use (Windows) is left for the next run.
    returned += await recoverHolder(box, holder).catch((error: unknown) => {
      if (isUnreadable(error) || hasErrno(error, "EBUSY")) return 0;
      throw error;
    });
  }
  await emptyTrash(box);
  return returned;
}

/**
 * Returns tickets that this process claimed but no longer works on, because a step failed on a full
 * disk or its reply was lost. The attempt counts.
 */
export async function returnOwn(box: Box): Promise<number> {
  const holder = (await box.ground.session()).holder.id;
  const directory = box.layout.processing(holder);
  let returned = 0;
  for (const text of await box.names(directory)) {
    const name = findTicketName(text);
    const path = `${directory}/${text}`;
    if (name !== undefined && !box.inProgress.has(path) && (await returnTicket(box, path, name, holder))) returned++;
  }
  return returned;
}

/** Recovers one holder, whose session is settled or has ended. */
export async function recoverHolder(box: Box, holder: string): Promise<number> {
  await emptyStaging(box, holder);
  return await returnTickets(box, holder);
}

/** Returns this process's claimed tickets, unless the same session has the box open a second time. */
export async function leaveBox(box: Box): Promise<void> {
  await box.leave(async () => {
    // A process that opened for reading has claimed nothing.
    const session = await box.ground.session().catch(() => undefined);
    if (session !== undefined) await recoverHolder(box, session.holder.id);
  });
}

async function emptyStaging(box: Box, holder: string): Promise<void> {
  const directory = box.layout.staging(holder);
  await emptyDirectory(box, directory, async (text) => {
    const path = `${directory}/${text}`;
    const name = findTicketName(text);
    if (name === undefined) return await trash(box, path);
    await settleTicket(box, path, name).catch((error: unknown) => {
      // The ticket and its directory stay. The next run tries again.
      if (!isUnreadable(error) && !hasErrno(error, "ESTALE")) throw error;
    });
  });
}

async function returnTickets(box: Box, holder: string): Promise<number> {
  const directory = box.layout.processing(holder);
  let returned = 0;
  await emptyDirectory(box, directory, async (text) => {
    const name = findTicketName(text);
    if (name === undefined) return await trash(box, `${directory}/${text}`);
    if (await returnTicket(box, `${directory}/${text}`, name, holder)) returned++;
  });
  return returned;
}

async function returnTicket(box: Box, path: string, name: TicketName, holder: string): Promise<boolean> {
  if (!(await moveBack(box, path, name, holder))) return false;
  const { directory: location } = box.layout;
  signal("holdfast:ticket.returned", () => ({ location, id: name.id, attempt: attemptOf(name) }));
  return true;
}

/** The name keeps the number of claims, so the next claim counts on. */
async function moveBack(box: Box, path: string, name: TicketName, holder: string): Promise<boolean> {
  const ticket = await findReadableTicket(box, path);
  if (ticket !== undefined) {
    // The note precedes the move, so that the history never shows a later attempt without this one.
    await noteLost(box, ticket, { name, holder, reason: "Its worker died, or was silent for its lease." });
    const { priority, group } = ticket.manifest;
    return await enter(box, path, name, { priority, group });
  }
  // The ticket is gone or damaged. The next claim of a damaged ticket moves it to the dead letters,
  // with the reason.
  return await enter(box, path, unrankedOf(name), { priority: priorityMax });
}

/** Only `rmdir` proves that nothing is left: a listing may be stale, and entries may still arrive. */
async function emptyDirectory(box: Box, directory: string, take: (name: string) => Promise<void>): Promise<void> {
  for (let round = 0; round < roundsMax; round++) {
    for (const name of await box.names(directory)) await take(name);
    try {
      await box.disk.rmdir(directory);
      return;
    } catch (error) {
      // Another program made a file of this name, or keeps the empty directory open (Windows). It is
      // left for the next recovery.
      if (hasErrno(error, "ENOENT", "ENOTDIR", "EBUSY")) return;
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "ESTALE")) throw error;
    }
  }
}

/**
 * Removes outputs that were not committed. First renames their directory, so that the worker can no
 * longer commit it.
 */
async function trash(box: Box, path: string): Promise<void> {
  const target = `${await box.ensure(box.layout.trash)}/${randomName(box.ground.ports.random.bytes(16))}`;
  if (await moveOnce(box.disk, path, target)) await removeTree(box.disk, target);
}

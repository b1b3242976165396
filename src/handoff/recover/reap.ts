// Giving back what dead processes had in hand.
//
// For each of them, in this order: its session is settled, so that nothing can be staged or linked from its temp
// directory; its entries in the box's `staging` are taken away one by one; then its tickets go back. So a worker
// that only slept cannot commit once its ticket is back: what it would commit is gone.
import { hasErrno } from "../../ports/disk-error.ts";
import { isId, randomName } from "../../format/id.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { priorityMax } from "../model/manifest.ts";
import { findTicketName, unrankedOf, type TicketName } from "../model/ticket-name.ts";
import { emptyTrash } from "../operate/trash.ts";
import { enter } from "../publish/enter.ts";
import { findWhole, settleTicket } from "../publish/staged.ts";
import { noteLost } from "./lost-note.ts";

/** A directory into which something comes each time it was emptied is left to the next round. */
const roundsMax = 5;

/** Gives back what the dead have left; returns how many tickets went back. Any number of processes may do it at once. */
export async function reap(box: Box): Promise<number> {
  const { processings, stagings } = box.layout;
  const own = (await box.ground.session()).holder.id;
  const holders = new Set([...(await box.names(processings)), ...(await box.names(stagings))]);
  let returned = 0;
  for (const holder of holders) {
    if (!isId(holder) || holder === own || !(await box.ground.settle(holder))) continue;
    returned += await recover(box, holder);
  }
  await emptyTrash(box);
  return returned;
}

/**
 * What this process itself has claimed and has not in hand: a step that failed on a full disk, or whose answer
 * was lost. It goes back, and the attempt counts.
 */
export async function returnOwn(box: Box): Promise<number> {
  const holder = (await box.ground.session()).holder.id;
  const directory = box.layout.processing(holder);
  let returned = 0;
  for (const text of await box.names(directory)) {
    const name = findTicketName(text);
    const path = `${directory}/${text}`;
    if (name !== undefined && !box.inHand.has(path) && (await returnTicket(box, path, name, holder))) returned++;
  }
  return returned;
}

/** What a holder left that is settled, or has ended. */
export async function recover(box: Box, holder: string): Promise<number> {
  await emptyStaging(box, holder);
  return await returnTickets(box, holder);
}

/** What this process has in hand goes back, unless another opening of the box in the same session goes on with it. */
export async function leaveBox(box: Box): Promise<void> {
  await box.leave(async () => {
    // A process that could only look has nothing in hand.
    const session = await box.ground.session().catch(() => undefined);
    if (session !== undefined) await recover(box, session.holder.id);
  });
}

async function emptyStaging(box: Box, holder: string): Promise<void> {
  const directory = box.layout.staging(holder);
  await emptyDirectory(box, directory, async (text) => {
    const path = `${directory}/${text}`;
    const name = findTicketName(text);
    if (name === undefined) return await trash(box, path);
    await settleTicket(box, path, name).catch((error: unknown) => {
      // Left where it is, and with it the directory: the next round tries again.
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

/** With the same count of claims: the next claim is one more. */
async function returnTicket(box: Box, path: string, name: TicketName, holder: string): Promise<boolean> {
  const ticket = await findWhole(box, path);
  if (ticket !== undefined) {
    // Before the ticket goes back, so that no later attempt stands there alone.
    await noteLost(box, ticket, { name, holder, reason: "Its worker died, or was silent for its lease." });
    const { priority, group } = ticket.manifest;
    return await enter(box, path, name, group === undefined ? { priority } : { priority, group });
  }
  // Gone since, or damaged: the next claim moves it to the dead letters, with the reason.
  return await enter(box, path, unrankedOf(name), { priority: priorityMax });
}

/** `rmdir` alone tells that nothing is left: a listing may be old, and something may still arrive. */
async function emptyDirectory(box: Box, directory: string, take: (name: string) => Promise<void>): Promise<void> {
  for (let round = 0; round < roundsMax; round++) {
    for (const name of await box.names(directory)) await take(name);
    try {
      await box.disk.rmdir(directory);
      return;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return;
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "ESTALE")) throw error;
    }
  }
}

/** Results that were not committed. The entry itself is moved away first, so that its worker cannot commit it any more. */
async function trash(box: Box, path: string): Promise<void> {
  const target = `${await box.ensure(box.layout.trash)}/${randomName(box.ground.ports.random.bytes(16))}`;
  if (await moveOnce(box.disk, path, target)) await removeTree(box.disk, target);
}

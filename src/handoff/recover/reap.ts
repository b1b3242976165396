// Giving back what dead processes had in hand.
//
// For each of them, in this order: its session is settled, so that nothing can be staged or linked from its temp
// directory; its entries in the box's `staging` are taken away one by one; then its tickets go back. So a worker
// that only slept cannot commit once its ticket is back: what it would commit is gone.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { isId, randomName } from "../../format/id.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { ticketKind, type Ticket } from "../model/manifest.ts";
import { findTicketName, unrankedOf, type TicketName } from "../model/ticket-name.ts";
import { enter } from "../publish/enter.ts";
import { discardStaged } from "../publish/publisher.ts";

/** A directory into which something comes each time it was emptied is left to the next round. */
const roundsMax = 5;

/** Gives back what the dead have left; returns how many tickets went back. Any number of processes may do it at once. */
export async function reap(box: Box): Promise<number> {
  const { processings, stagings } = box.layout;
  const own = (await box.ground.session()).holder.id;
  const holders = new Set([...(await listIfThere(box, processings)), ...(await listIfThere(box, stagings))]);
  let returned = 0;
  for (const holder of holders) {
    if (!isId(holder) || holder === own || !(await box.ground.settle(holder))) continue;
    returned += await recover(box, holder);
  }
  return returned;
}

/** What a holder left that is settled, or has ended. */
export async function recover(box: Box, holder: string): Promise<number> {
  await emptyStaging(box, holder);
  return await returnTickets(box, holder);
}

async function emptyStaging(box: Box, holder: string): Promise<void> {
  const directory = box.layout.staging(holder);
  await emptyDirectory(box, directory, async (text) => {
    const path = `${directory}/${text}`;
    const name = findTicketName(text);
    if (name === undefined) return await trash(box, path);
    const ticket = await findWhole(box, path);
    // A ticket that has won its key is published, whatever its publisher came to: another publisher may have been told so.
    if (ticket !== undefined && (await hasKey(box, ticket))) await enter(box, path, name, ticket.manifest);
    else await discardStaged(box, path, name.id);
  });
}

async function returnTickets(box: Box, holder: string): Promise<number> {
  const directory = box.layout.processing(holder);
  let returned = 0;
  await emptyDirectory(box, directory, async (text) => {
    const name = findTicketName(text);
    if (name === undefined) return await trash(box, `${directory}/${text}`);
    if (await returnTicket(box, `${directory}/${text}`, name)) returned++;
  });
  return returned;
}

/** With the same count of claims: the next claim is one more. */
async function returnTicket(box: Box, path: string, name: TicketName): Promise<boolean> {
  const ticket = await findWhole(box, path);
  if (ticket !== undefined) {
    const { priority, group } = ticket.manifest;
    return await enter(box, path, name, group === undefined ? { priority } : { priority, group });
  }
  // Gone since, or damaged: whoever claims it next has it moved to the dead letters with the reason.
  return await enter(box, path, unrankedOf(name), { priority: 9 });
}

/** `rmdir` alone tells that nothing is left: a listing may be old, and something may still arrive. */
async function emptyDirectory(box: Box, directory: string, take: (name: string) => Promise<void>): Promise<void> {
  for (let round = 0; round < roundsMax; round++) {
    for (const name of await listIfThere(box, directory)) await take(name);
    try {
      await box.disk.rmdir(directory);
      return;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return;
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "ESTALE")) throw error;
    }
  }
}

async function findWhole(box: Box, path: string): Promise<Ticket | undefined> {
  try {
    return await findRecord(box.disk, ticketKind, path);
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT") || hasErrno(error, "ESTALE", "EISDIR")) return undefined;
    throw error;
  }
}

async function hasKey(box: Box, { isKeyed, manifest }: Ticket): Promise<boolean> {
  if (!isKeyed) return false;
  const first = await findRecord(box.disk, ticketKind, box.layout.key(manifest.key));
  return first?.manifest.id === manifest.id;
}

/** Results that were not committed. The entry itself is moved away first, so that its worker cannot commit it any more. */
async function trash(box: Box, path: string): Promise<void> {
  const target = `${await box.ensure(box.layout.trash)}/${randomName(box.ground.ports.random.bytes(16))}`;
  if (await moveOnce(box.disk, path, target)) await removeTree(box.disk, target);
}

async function listIfThere(box: Box, directory: string): Promise<string[]> {
  try {
    return await box.disk.list(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return [];
    throw error;
  }
}

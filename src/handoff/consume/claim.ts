// Claiming: one rename from `incoming` to a directory of this session. Of many processes one wins, and the new
// name counts the attempt, so that a ticket which kills its workers comes to its end.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { getRecord } from "../../durable/publish/record-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { Box } from "../box/box.ts";
import { findMinuteMs } from "../box/layout.ts";
import { priorityMax, ticketKind, type Ticket } from "../model/manifest.ts";
import { claimedOf, findTicketName, formatTicketName, type TicketName } from "../model/ticket-name.ts";

/** How many names are taken from a directory at a time. */
const namesPerLook = 256;
/** A directory that has been empty for so long after its minute is removed. */
const keepMs = 120_000;

export interface Claimed {
  readonly session: HolderSession;
  readonly name: TicketName;
  readonly path: string;
  readonly ticket: Ticket;
}

/** The ticket that this session got; `damage` says why it cannot be read. */
export type Claim =
  | Claimed
  | { readonly session: HolderSession; readonly name: TicketName; readonly path: string; readonly damage: Error };

/** The most urgent, then the oldest ticket that this process gets; undefined when there is none. */
export async function claimNext(box: Box): Promise<Claim | undefined> {
  const session = await box.ground.session();
  const processing = await box.processing(session);
  for (let priority = 0; priority <= priorityMax; priority++) {
    const parent = box.layout.incoming(priority);
    for (const minute of await minutesOf(box, parent)) {
      const directory = `${parent}/${minute}`;
      const names = await listSome(box, directory);
      for (const text of names) {
        const name = findTicketName(text);
        // Foreign files are left alone.
        if (name === undefined) continue;
        const claim = await claimTicket(box, session, `${directory}/${text}`, processing, name);
        if (claim !== undefined) return claim;
      }
      if (names.length === 0) await removeIfPast(box, directory, minute);
    }
  }
  return undefined;
}

/** Undefined when another process has it. */
export async function claimTicket(
  box: Box,
  session: HolderSession,
  from: string,
  processing: string,
  name: TicketName,
): Promise<Claim | undefined> {
  const claimed = claimedOf(name);
  const path = `${processing}/${formatTicketName(claimed)}`;
  // The target is a name of this session. Two callers of one process would both find it there, and both believe
  // that they have moved it.
  if (box.inHand.has(path)) return undefined;
  box.inHand.add(path);
  let isClaimed = false;
  try {
    // Without a sync: a claim that a power cut takes back belongs to no process any more.
    isClaimed = await moveOnce(box.disk, from, path);
  } finally {
    if (!isClaimed) box.inHand.delete(path);
  }
  if (!isClaimed) return undefined;
  try {
    return { session, name: claimed, path, ticket: await getRecord(box.disk, ticketKind, path) };
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) throw error;
    return { session, name: claimed, path, damage: error };
  }
}

async function minutesOf(box: Box, parent: string): Promise<string[]> {
  const names = await listSome(box, parent, Infinity);
  return names.filter((name) => findMinuteMs(name) !== undefined).sort();
}

/** Empty for a directory that is gone. */
async function listSome(box: Box, directory: string, count = namesPerLook): Promise<string[]> {
  try {
    return count === Infinity ? await box.disk.list(directory) : await box.disk.listSome(directory, count);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return [];
    throw error;
  }
}

/** `rmdir` is the only truth about emptiness: a ticket that arrives meanwhile keeps its directory, or makes it again. */
async function removeIfPast(box: Box, directory: string, minute: string): Promise<void> {
  if ((findMinuteMs(minute) ?? Infinity) + keepMs > (await box.nowMs())) return;
  await box.disk.rmdir(directory).catch(() => undefined);
}

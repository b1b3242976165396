// Replay: returns dead letters and archived tickets to the queue.
import { checkOptions } from "../../format/known-options.ts";
import { enter } from "../publish/enter.ts";
import { holdfastError } from "../../errors.ts";
import type { Box } from "../box/box.ts";
import type { ReplayOptions } from "../model/handoff.ts";
import type { TicketName } from "../model/ticket-name.ts";
import { readTicket } from "./describe.ts";
import { findTicket } from "./find.ts";
import { ticketsIn, type FoundTicket } from "./tickets.ts";

/**
 * Returns how many tickets returned to the queue. A collection and a replay each move a ticket by
 * one rename, so only one of them gets it.
 */
export async function replay(box: Box, options: ReplayOptions): Promise<number> {
  checkOptions("replay", options, { from: true, id: true, resetAttempts: true });
  const { from, id } = options;
  if (from !== "error" && from !== "archive")
    throw new TypeError(`replay: from must be "error" or "archive", not ${String(from)}.`);
  if (id === undefined) return await replayAll(box, options);
  const found = await findTicket(box, id);
  if (found?.state !== from) return 0;
  const read = await readTicket(box, found);
  if (read !== undefined && "damage" in read) throw damaged(found, read.damage);
  return (await replayOne(box, found, options)) ? 1 : 0;
}

async function replayAll(box: Box, options: ReplayOptions): Promise<number> {
  let replayed = 0;
  for await (const found of ticketsIn(box, options.from)) if (await replayOne(box, found, options)) replayed++;
  return replayed;
}

/**
 * Returns false for a ticket that is gone, or so damaged that its next claim would make it a dead
 * letter again.
 */
async function replayOne(
  box: Box,
  found: FoundTicket,
  { from, resetAttempts = from === "error" }: ReplayOptions,
): Promise<boolean> {
  const { name, path } = found;
  const read = await readTicket(box, found);
  if (read === undefined || "damage" in read) return false;
  const { priority, group } = read.ticket.manifest;
  const back: TicketName = {
    ...name,
    isDuplicate: false,
    forgiven: resetAttempts ? name.claims : name.forgiven,
    // An archived ticket has a ledger entry. Its next delivery needs another one.
    replays: from === "archive" ? name.replays + 1 : name.replays,
  };
  return await enter(box, path, back, { priority, group });
}

function damaged({ name, path }: FoundTicket, why: string): Error {
  const message = `Ticket ${name.id} cannot be replayed, because its file is damaged. ${why} Restore ${path} from a backup, or publish its files again.`;
  return holdfastError("CORRUPT", message, { path });
}

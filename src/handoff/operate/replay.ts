// Replay: dead letters and archived tickets come back to where consumers look.
import { enter } from "../publish/enter.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { ticketKind } from "../model/manifest.ts";
import type { TicketName } from "../model/ticket-name.ts";
import { ticketsIn } from "./tickets.ts";

export interface ReplayOptions {
  from: "error" | "archive";
  /** Default: all. */
  id?: string | undefined;
  /** Count the attempts anew. Default true for dead letters: they would fail at once otherwise. */
  resetAttempts?: boolean | undefined;
}

/** How many came back. Against retention one of the two wins: each moves the ticket by one rename. */
export async function replay(box: Box, { from, id, resetAttempts = from === "error" }: ReplayOptions): Promise<number> {
  let replayed = 0;
  for await (const { name, path } of ticketsIn(box, from)) {
    if (id !== undefined && name.id !== id) continue;
    const ticket = await findRecord(box.disk, ticketKind, path);
    if (ticket === undefined) continue;
    const { priority, group } = ticket.manifest;
    const back: TicketName = {
      ...name,
      isDuplicate: false,
      forgiven: resetAttempts ? name.claims : name.forgiven,
      // What the archive has was committed: a new delivery needs an entry of its own in the ledger.
      replays: from === "archive" ? name.replays + 1 : name.replays,
    };
    if (await enter(box, path, back, group === undefined ? { priority } : { priority, group })) replayed++;
  }
  return replayed;
}

// The note about a claim that was never settled, for people who read the history of a ticket.
import type { Box } from "../box/box.ts";
import { writeNote } from "../consume/settle.ts";
import { findCommitted } from "../ledger/ledger.ts";
import type { Ticket } from "../model/manifest.ts";
import type { TicketName } from "../model/ticket-name.ts";

export interface LostClaim {
  readonly name: TicketName;
  /** Names the process that held the claim, for people. */
  readonly holder: string;
  readonly reason: string;
}

/** Writes the note, unless the worker wrote one or the claim was committed. Never fails. */
export async function noteLost(box: Box, { manifest }: Ticket, { name, holder, reason }: LostClaim): Promise<void> {
  try {
    const path = box.layout.ledger(manifest.key, name.replays);
    if ((await findCommitted(box, path, { isSure: true })) !== undefined) return;
    const session = await box.ground.session();
    await writeNote(box, { session, name, holder }, "lost", reason);
  } catch {
    // An error is ignored: returning the ticket to the queue matters more than its history.
  }
}

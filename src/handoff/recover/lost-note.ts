// The note of a claim that ended without a word, for people that look at the history of a ticket.
import type { Box } from "../box/box.ts";
import { writeNote } from "../consume/settle.ts";
import { findCommitted } from "../ledger/ledger.ts";
import type { Ticket } from "../model/manifest.ts";
import type { TicketName } from "../model/ticket-name.ts";

export interface LostClaim {
  readonly name: TicketName;
  /** Which process had it, for people. */
  readonly holder: string;
  readonly reason: string;
}

/** A word that the worker had written stays; one that has committed was not lost. Never fails. */
export async function noteLost(box: Box, { manifest }: Ticket, { name, holder, reason }: LostClaim): Promise<void> {
  try {
    const path = box.layout.ledger(manifest.key, name.replays);
    if ((await findCommitted(box, path, { isSure: true })) !== undefined) return;
    const session = await box.ground.session();
    await writeNote(box, { session, name, holder }, "lost", reason);
  } catch {
    // The ticket goes back in any case: that it is worked is worth more than what its history says.
  }
}

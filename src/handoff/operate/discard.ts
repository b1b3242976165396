// Discard: removes dead letters and archived tickets that nobody needs any more.
import { checkOptions } from "../../format/known-options.ts";
import type { Box } from "../box/box.ts";
import type { DiscardOptions } from "../model/handoff.ts";
import { findTicket } from "./find.ts";
import { ticketsIn } from "./tickets.ts";
import { removeTicket } from "./trash.ts";

/**
 * Returns how many tickets this call removed. Replay and discard each move a ticket by one rename,
 * so only one of them gets it.
 */
export async function discard(box: Box, options: DiscardOptions): Promise<number> {
  checkOptions("discard", options, { from: true, id: true });
  const { from, id } = options;
  if (from !== "error" && from !== "archive")
    throw new TypeError(`discard: from must be "error" or "archive", not ${String(from)}.`);
  if (id !== undefined) {
    const found = await findTicket(box, id);
    return found?.state === from && (await removeTicket(box, found)) !== undefined ? 1 : 0;
  }
  let discarded = 0;
  for await (const found of ticketsIn(box, from)) if ((await removeTicket(box, found)) !== undefined) discarded++;
  return discarded;
}

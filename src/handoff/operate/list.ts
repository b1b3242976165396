// Listing: what is known of the tickets in one state, one by one.
import { checkOptions } from "../../format/known-options.ts";
import type { Box } from "../box/box.ts";
import { ticketStates, type ListOptions, type TicketInfo, type TicketState } from "../model/handoff.ts";
import { describeTicket } from "./describe.ts";
import { ticketsIn } from "./tickets.ts";

/** Before anything is listed: TypeError, RangeError. */
export function checkList(state: TicketState, options: ListOptions): void {
  checkOptions("list", options, { limit: true, group: true });
  const { limit = Infinity } = options;
  if (!ticketStates.includes(state))
    throw new TypeError(`list: there is no state ${state as string}; there are ${ticketStates.join(", ")}.`);
  if (!(limit >= 0)) throw new RangeError(`list: limit must be a number from 0, not ${limit}.`);
}

/** In the order in which they will be worked, or were done. */
export async function* listTickets(
  box: Box,
  state: TicketState,
  { limit = Infinity, group }: ListOptions,
): AsyncGenerator<TicketInfo> {
  let count = 0;
  for await (const found of ticketsIn(box, state, group)) {
    if (count >= limit) return;
    const info = await describeTicket(box, found);
    if (info === undefined || (group !== undefined && info.group !== group)) continue;
    count++;
    yield info;
  }
}

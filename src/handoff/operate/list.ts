// Lists the tickets in one state with their descriptions.
import { checkOptions } from "../../format/known-options.ts";
import type { Box } from "../box/box.ts";
import { ticketStates, type ListOptions, type TicketInfo, type TicketState } from "../model/handoff.ts";
import { describeTicket } from "./describe.ts";
import { ticketsIn } from "./tickets.ts";

/** Throws a TypeError or RangeError before anything is listed. */
export function checkList(state: TicketState, options: ListOptions): void {
  checkOptions("list", options, { limit: true, group: true, skip: true, backwards: true });
  const { limit = Infinity, skip = 0 } = options;
  if (!ticketStates.includes(state))
    throw new TypeError(`list: there is no state ${state as string}; the states are ${ticketStates.join(", ")}.`);
  if (!(skip >= 0)) throw new RangeError(`list: skip must be a number from 0, not ${skip}.`);
  if (!(limit >= 0)) throw new RangeError(`list: limit must be a number from 0, not ${limit}.`);
}

/** Yields tickets in the order in which they will be processed, or were finished. */
export async function* listTickets(
  box: Box,
  state: TicketState,
  { limit = Infinity, group, skip = 0, backwards }: ListOptions,
): AsyncGenerator<TicketInfo> {
  let [count, skipped] = [0, 0];
  for await (const found of ticketsIn(box, state, { group, backwards })) {
    if (count >= limit) return;
    // Skipped tickets are not read, so a page far from the start is cheap.
    if (group === undefined && skipped++ < skip) continue;
    const info = await describeTicket(box, found);
    if (info === undefined || (group !== undefined && (info.group !== group || skipped++ < skip))) continue;
    count++;
    yield info;
  }
}

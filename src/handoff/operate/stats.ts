// Counts the tickets of a box by listing its directories.
import type { Box } from "../box/box.ts";
import { findMinuteMs } from "../box/layout.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { ticketStates, type HandoffStats, type TicketState } from "../model/handoff.ts";
import { ticketKind } from "../model/manifest.ts";
import { undefinedIfDamaged } from "./find.ts";
import type { Pause } from "./pause.ts";
import { directoriesOf, ticketsOf, type FoundTicket } from "./tickets.ts";

/** A ticket that moves meanwhile may be counted twice, or not at all. */
export async function statsOf(box: Box, pause: Pause): Promise<HandoffStats> {
  const counts: Record<TicketState, number> = { incoming: 0, delayed: 0, processing: 0, archive: 0, error: 0 };
  const oldest = new Oldest();
  for (const state of ticketStates)
    for (const directory of await directoriesOf(box, state))
      for await (const ticket of ticketsOf(box, directory)) {
        counts[state]++;
        if (state === "incoming") oldest.add(ticket);
      }
  const oldestIncomingMs = await oldest.ageMs(box);
  const paused = await pause.find();
  return {
    ...counts,
    holders: await countHolders(box),
    ...(oldestIncomingMs === undefined ? {} : { oldestIncomingMs }),
    paused: paused !== undefined,
    ...(paused?.reason === undefined ? {} : { pauseReason: paused.reason }),
  };
}

/** Counts the live processes that have a directory for claims. */
async function countHolders(box: Box): Promise<number> {
  let count = 0;
  for (const { holder } of await directoriesOf(box, "processing"))
    if (holder !== undefined && (await box.ground.stateOf(holder)) !== "dead") count++;
  return count;
}

/** Keeps the first claimable ticket of each directory. The oldest of these is the oldest of all. */
class Oldest {
  readonly #firsts = new Map<string, FoundTicket>();

  add(ticket: FoundTicket): void {
    const directory = parentOf(ticket.path);
    const first = this.#firsts.get(directory);
    // Ids and lane positions both sort by time.
    if (first === undefined || keyOf(ticket) < keyOf(first)) this.#firsts.set(directory, ticket);
  }

  /** Returns undefined if there is no ticket. */
  async ageMs(box: Box): Promise<number | undefined> {
    let sinceMs = Infinity;
    for (const [directory, { path }] of this.#byMinute()) {
      const minuteMs = findMinuteMs(directory.slice(directory.lastIndexOf("/") + 1)) ?? 0;
      // The tickets of later minutes are younger.
      if (minuteMs > sinceMs) continue;
      const ticket = await undefinedIfDamaged(findRecord(box.disk, ticketKind, path));
      if (ticket === undefined) continue;
      const { createdAt, notBefore } = ticket.manifest;
      // A returned ticket is in the minute of its return, not in that of its creation.
      sinceMs = Math.min(sinceMs, Math.max(createdAt.getTime(), notBefore?.getTime() ?? 0, minuteMs));
    }
    return sinceMs === Infinity ? undefined : Math.max(0, (await box.nowMs()) - sinceMs);
  }

  #byMinute(): [directory: string, first: FoundTicket][] {
    const nameOf = ([directory]: [string, FoundTicket]): string => directory.slice(directory.lastIndexOf("/") + 1);
    return [...this.#firsts].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  }
}

function keyOf({ name: { rank = 0, id } }: FoundTicket): string {
  return `${String(rank).padStart(16, "0")}-${id}`;
}

// Lists tickets: the directories of each state, in the order in which tickets will be processed, or
// were finished.
import { isId } from "../../format/id.ts";
import type { Box } from "../box/box.ts";
import { laneCount, laneOf } from "../box/layout.ts";
import type { ListOptions, TicketState } from "../model/handoff.ts";
import { priorityMax } from "../model/manifest.ts";
import { findTicketName, type TicketName } from "../model/ticket-name.ts";

/** A ticket's file, and what its path tells about it. */
export interface FoundTicket {
  readonly name: TicketName;
  readonly path: string;
  readonly state: TicketState;
  /** The holder of a claimed ticket. */
  readonly holder?: string;
}

export interface TicketDirectory {
  readonly state: TicketState;
  readonly directory: string;
  readonly holder?: string;
}

/**
 * Yields the files of all tickets in a state; a ticket may move to another state meanwhile. With
 * `group`, lists only the directories that can have its tickets.
 */
export async function* ticketsIn(
  box: Box,
  state: TicketState,
  { group, backwards }: Pick<ListOptions, "group" | "backwards"> = {},
): AsyncGenerator<FoundTicket> {
  const directories = await directoriesOf(box, state, group);
  for (const directory of backwards ? directories.reverse() : directories) yield* ticketsOf(box, directory, backwards);
}

export async function* ticketsOf(
  box: Box,
  { state, directory, holder }: TicketDirectory,
  backwards = false,
): AsyncGenerator<FoundTicket> {
  const names = (await box.names(directory)).sort();
  for (const text of backwards ? names.reverse() : names) {
    const name = findTicketName(text);
    if (name === undefined) continue;
    yield { name, path: `${directory}/${text}`, state, ...(holder === undefined ? {} : { holder }) };
  }
}

export async function directoriesOf(box: Box, state: TicketState, group?: string): Promise<TicketDirectory[]> {
  const { layout } = box;
  const below = async (parent: string): Promise<TicketDirectory[]> =>
    (await box.names(parent)).sort().map((name) => ({ state, directory: `${parent}/${name}` }));
  switch (state) {
    case "incoming": {
      if (group !== undefined) return [inLane(box, laneOf(group))];
      const found: TicketDirectory[] = [];
      for (let priority = 0; priority <= priorityMax; priority++)
        found.push(...(await below(layout.incoming(priority))));
      return [...found, ...(await lanesOf(box))];
    }
    case "delayed":
      return await below(layout.delayed);
    case "processing": {
      const holders = (await box.names(layout.processings)).filter((name) => isId(name));
      const claimed = holders.map((holder) => ({ state, directory: layout.processing(holder), holder }));
      return [...claimed, { state, directory: layout.parked }];
    }
    case "archive":
      return await below(layout.archives);
    case "error":
      return await below(layout.errors);
  }
}

/** Returns the lanes that were ever used. */
export async function lanesOf(box: Box): Promise<TicketDirectory[]> {
  const { layout } = box;
  const used = new Set((await box.names(layout.lanes)).map((name) => `${layout.lanes}/${name}`));
  const numbers = Array.from({ length: laneCount }, (_, number) => number);
  return numbers.filter((number) => used.has(layout.lane(number))).map((number) => inLane(box, number));
}

function inLane({ layout }: Box, number: number): TicketDirectory {
  return { state: "incoming", directory: `${layout.lane(number)}/incoming` };
}

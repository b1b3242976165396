// Where tickets are: the directories of each state, in the order in which tickets will be worked, or were done.
import { isId } from "../../format/id.ts";
import type { Box } from "../box/box.ts";
import { laneCount, laneOf } from "../box/layout.ts";
import type { TicketState } from "../model/handoff.ts";
import { priorityMax } from "../model/manifest.ts";
import { findTicketName, type TicketName } from "../model/ticket-name.ts";

/** A ticket's file, and what its place says. */
export interface FoundTicket {
  readonly name: TicketName;
  readonly path: string;
  readonly state: TicketState;
  /** Of a claimed one. */
  readonly holder?: string;
}

export interface TicketDirectory {
  readonly state: TicketState;
  readonly directory: string;
  readonly holder?: string;
}

/**
 * The files of all tickets in a state. A ticket may be on its way to another state meanwhile. Of `group` only the
 * directories in which its tickets can be.
 */
export async function* ticketsIn(box: Box, state: TicketState, group?: string): AsyncGenerator<FoundTicket> {
  for (const directory of await directoriesOf(box, state, group)) yield* ticketsOf(box, directory);
}

export async function* ticketsOf(box: Box, { state, directory, holder }: TicketDirectory): AsyncGenerator<FoundTicket> {
  for (const text of (await box.names(directory)).sort()) {
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

/** The lanes that were ever used. */
export async function lanesOf(box: Box): Promise<TicketDirectory[]> {
  const { layout } = box;
  const used = new Set((await box.names(layout.lanes)).map((name) => `${layout.lanes}/${name}`));
  const numbers = Array.from({ length: laneCount }, (_, number) => number);
  return numbers.filter((number) => used.has(layout.lane(number))).map((number) => inLane(box, number));
}

function inLane({ layout }: Box, number: number): TicketDirectory {
  return { state: "incoming", directory: `${layout.lane(number)}/incoming` };
}

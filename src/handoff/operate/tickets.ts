// Finding tickets: in which state each is, what was tried, and what came of it. For people and for receipts; a
// ticket may be on its way to another state while it is looked for.
import type { HolderInfo } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { isId } from "../../format/id.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { laneCount } from "../box/layout.ts";
import { noteKind, type NoteOutcome } from "../consume/settle.ts";
import { findCommitted } from "../ledger/ledger.ts";
import { priorityMax, ticketKind, type Manifest } from "../model/manifest.ts";
import { attemptOf, findTicketName, type TicketName } from "../model/ticket-name.ts";

export const ticketStates = ["incoming", "delayed", "processing", "archive", "error"] as const;
export type TicketState = (typeof ticketStates)[number];

export interface AttemptNote {
  readonly attempt: number;
  readonly at: Date;
  readonly outcome: NoteOutcome;
  readonly reason: string;
}

export interface TicketInfo extends Manifest {
  readonly state: TicketState;
  readonly attempt: number;
  readonly holder?: HolderInfo;
  readonly progress?: unknown;
  readonly history: readonly AttemptNote[];
  /** From the ledger: what `ack` or the handler returned. */
  readonly result?: unknown;
  readonly duplicate: boolean;
}

/** A ticket's file, and what its place says. */
export interface FoundTicket {
  readonly name: TicketName;
  readonly path: string;
  readonly state: TicketState;
  /** Of a claimed one. */
  readonly holder?: string;
}

/** The files of all tickets in a state, in the order in which they will be worked, or were done. */
export async function* ticketsIn(box: Box, state: TicketState): AsyncGenerator<FoundTicket> {
  for (const { directory, holder } of await directoriesOf(box, state))
    for (const text of (await namesIn(box, directory)).sort()) {
      const name = findTicketName(text);
      if (name === undefined) continue;
      yield { name, path: `${directory}/${text}`, state, ...(holder === undefined ? {} : { holder }) };
    }
}

interface TicketDirectory {
  readonly directory: string;
  readonly holder?: string;
}

async function directoriesOf(box: Box, state: TicketState): Promise<TicketDirectory[]> {
  const { layout } = box;
  const below = async (parent: string): Promise<TicketDirectory[]> =>
    (await namesIn(box, parent)).sort().map((name) => ({ directory: `${parent}/${name}` }));
  switch (state) {
    case "incoming": {
      const found: TicketDirectory[] = [];
      for (let priority = 0; priority <= priorityMax; priority++)
        found.push(...(await below(layout.incoming(priority))));
      for (let lane = 0; lane < laneCount; lane++) found.push({ directory: `${layout.lane(lane)}/incoming` });
      return found;
    }
    case "delayed":
      return await below(layout.delayed);
    case "processing": {
      const holders = (await namesIn(box, layout.processings)).filter((name) => isId(name));
      const claimed = holders.map((holder) => ({ directory: layout.processing(holder), holder }));
      return [...claimed, { directory: layout.parked }];
    }
    case "archive":
    case "error":
      return await below(`${layout.directory}/${state}`);
  }
}

/** The file of the ticket `id`; undefined when there is none, or when it moved while it was looked for. */
export async function findTicket(box: Box, id: string): Promise<FoundTicket | undefined> {
  if (!isId(id)) return undefined;
  // In the order in which tickets move: one that moves on meanwhile is met in a later state.
  for (const state of ["delayed", "incoming", "processing", "error", "archive"] as const)
    for await (const found of ticketsIn(box, state)) if (found.name.id === id) return found;
  return undefined;
}

/** Undefined for a ticket that moved on, or that is damaged: `verify` tells of that. */
export async function describeTicket(
  box: Box,
  { name, path, state, holder }: FoundTicket,
): Promise<TicketInfo | undefined> {
  let ticket;
  try {
    ticket = await findRecord(box.disk, ticketKind, path);
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT", "NEWER_FORMAT") && !hasErrno(error, "ESTALE")) throw error;
  }
  if (ticket === undefined) return undefined;
  const entry = await findCommitted(box, box.layout.ledger(ticket.manifest.key, name.replays));
  const info = holder === undefined ? undefined : await box.ground.findHolder(holder);
  return {
    ...ticket.manifest,
    state,
    attempt: attemptOf(name),
    ...(info === undefined ? {} : { holder: info }),
    history: await historyOf(box, name),
    ...(entry?.committed.result === undefined ? {} : { result: entry.committed.result }),
    duplicate: name.isDuplicate,
  };
}

async function historyOf(box: Box, { id, claims }: TicketName): Promise<AttemptNote[]> {
  const history: AttemptNote[] = [];
  for (let claim = 1; claim <= claims; claim++) {
    const note = await findRecord(box.disk, noteKind, box.layout.note(id, String(claim)));
    if (note === undefined) continue;
    const { attempt, at, outcome, reason } = note;
    history.push({ attempt, at: new Date(at), outcome, reason });
  }
  return history;
}

export async function namesIn(box: Box, directory: string): Promise<string[]> {
  try {
    return await box.disk.list(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return [];
    throw error;
  }
}

// Parked claims: claims that outlive their process. A claim is parked for a time. Until then, any
// process can continue the claim; afterwards, the ticket returns to the queue automatically
// (recover/due.ts).
import { holdfastError } from "../../errors.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { Box } from "../box/box.ts";
import type { ParkedTicket } from "../model/delivery.ts";
import { ticketKind } from "../model/manifest.ts";
import {
  attemptOf,
  findTicketName,
  formatTicketName,
  parkedOf,
  unparkedOf,
  type TicketName,
} from "../model/ticket-name.ts";
import { moveToHolder, type ClaimedTicket } from "./claim.ts";
import { claimTaken, mustStillHave } from "./settle.ts";

/** A parked claim, as its name describes it. */
export interface ParkedClaim {
  readonly name: TicketName;
  readonly path: string;
}

/** Parks a claim for `forMs`, and returns when it is due. Durable when it resolves. Throws CLAIM_LOST. */
export async function park(box: Box, claim: ClaimedTicket, forMs: number): Promise<Date> {
  mustStillHave(claim);
  const dueMs = Math.ceil((await box.nowMs()) + forMs);
  const directory = box.layout.parked;
  const path = `${directory}/${formatTicketName(parkedOf(claim.name, dueMs))}`;
  if (!(await box.within(directory, () => moveOnce(box.disk, claim.path, path)))) throw claimTaken(claim);
  await box.sync(directory);
  return new Date(dueMs);
}

/**
 * Moves a parked claim to this session's claims. Throws CLAIM_LOST if the claim is no longer
 * parked: it was settled, or its time has ended. For a ticket of a group, calls `enterLane` before
 * the move.
 */
export async function unpark(
  box: Box,
  session: HolderSession,
  claim: string,
  enterLane: (group: string) => Promise<void>,
): Promise<ClaimedTicket> {
  const found = (await findParked(box)).find(({ name }) => isNamed(name, claim));
  if (found === undefined) throw notParked(claim);
  const ticket = await findRecord(box.disk, ticketKind, found.path);
  if (ticket === undefined) throw notParked(claim);
  if (found.name.second !== undefined && ticket.manifest.group !== undefined) await enterLane(ticket.manifest.group);
  const name = unparkedOf(found.name);
  const path = await moveToHolder(box, session, found.path, name);
  if (path === undefined) throw notParked(claim);
  return { session, name, path, ticket };
}

/** Returns all claims that are parked now. */
export async function findParked(box: Box): Promise<ParkedClaim[]> {
  const directory = box.layout.parked;
  const parked: ParkedClaim[] = [];
  for (const text of await box.names(directory)) {
    const name = findTicketName(text);
    if (name?.rank !== undefined) parked.push({ name, path: `${directory}/${text}` });
  }
  return parked;
}

/** Returns the text by which callers name this claim. */
export function claimText({ id, claims }: TicketName): string {
  return `${id}-${claims}`;
}

export function describeParked(
  { name, ticket }: ClaimedTicket,
  dueAt: Date,
  paths: Readonly<Record<string, string>>,
): ParkedTicket {
  return { ...ticket.manifest, claim: claimText(name), attempt: attemptOf(name), dueAt, paths };
}

function isNamed(name: TicketName, claim: string): boolean {
  return claim === name.id || claim === claimText(name);
}

function notParked(claim: string): Error {
  const id = claim.slice(0, 36);
  const message = `The claim ${claim} is not parked: it was settled, or its time ran out and the ticket returned to the queue.`;
  return holdfastError("CLAIM_LOST", message, { id, attempt: Number(claim.slice(37)) });
}

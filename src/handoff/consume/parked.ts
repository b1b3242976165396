// Parked claims: claims that outlive their process. A claim is parked for a time; within it any process can go on
// with it, and when it is over the ticket goes back by itself (recover/due.ts).
//
// For the command line, as methods of BoxHandoff that are not in its public interface:
//   takeParked(forMs, { waitMs, signal }): Promise<ParkedTicket | undefined>   `handoff take --for`
//   resumeParked(claim): Promise<Delivery>                                      `handoff ack|retry|fail CLAIM`
// `claim` is what `ParkedTicket.claim` says, or the id of the ticket alone. CLAIM_LOST when it is not parked any more.
import { holdfastError } from "../../errors.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { Box } from "../box/box.ts";
import { ticketKind, type Manifest } from "../model/manifest.ts";
import {
  attemptOf,
  findTicketName,
  formatTicketName,
  parkedOf,
  unparkedOf,
  type TicketName,
} from "../model/ticket-name.ts";
import { takeInHand, type Claimed } from "./claim.ts";
import { claimLost, mustStillHave } from "./settle.ts";

/** A ticket that was taken and parked. */
export interface ParkedTicket extends Manifest {
  /** Names this claim and no later one of the same ticket: `<id>-<number>`. */
  readonly claim: string;
  readonly attempt: number;
  /** When it goes back, by the server's clock. */
  readonly dueAt: Date;
  /** Where its files are, by name. Read only. */
  readonly paths: Readonly<Record<string, string>>;
}

/** What is parked, as its name says. */
export interface Parked {
  readonly name: TicketName;
  readonly path: string;
}

/** Parks a claim for `forMs`; returns when it is due. Durable when it resolves. CLAIM_LOST. */
export async function park(box: Box, claim: Claimed, forMs: number): Promise<Date> {
  mustStillHave(claim);
  const dueMs = Math.ceil((await box.nowMs()) + forMs);
  const directory = box.layout.parked;
  const path = `${directory}/${formatTicketName(parkedOf(claim.name, dueMs))}`;
  if (!(await box.within(directory, () => moveOnce(box.disk, claim.path, path)))) throw claimLost(claim);
  await box.sync(directory);
  return new Date(dueMs);
}

/**
 * Moves a parked claim to what this session has in hand. CLAIM_LOST when it is not parked any more: it is
 * settled, or its time was over. `enterLane` is called for a ticket of a group before it is moved.
 */
export async function unpark(
  box: Box,
  session: HolderSession,
  claim: string,
  enterLane: (group: string) => Promise<void>,
): Promise<Claimed> {
  const found = (await findParked(box)).find(({ name }) => isNamed(name, claim));
  if (found === undefined) throw notParked(claim);
  const ticket = await findRecord(box.disk, ticketKind, found.path);
  if (ticket === undefined) throw notParked(claim);
  if (found.name.place !== undefined && ticket.manifest.group !== undefined) await enterLane(ticket.manifest.group);
  const name = unparkedOf(found.name);
  const path = await takeInHand(box, session, found.path, name);
  if (path === undefined) throw notParked(claim);
  return { session, name, path, ticket };
}

/** All claims that are parked now. */
export async function findParked(box: Box): Promise<Parked[]> {
  const directory = box.layout.parked;
  const parked: Parked[] = [];
  for (const text of await box.names(directory)) {
    const name = findTicketName(text);
    if (name?.rank !== undefined) parked.push({ name, path: `${directory}/${text}` });
  }
  return parked;
}

/** How a caller names this claim. */
export function claimText({ id, claims }: TicketName): string {
  return `${id}-${claims}`;
}

export function describeParked(
  { name, ticket }: Claimed,
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
  const message = `The claim ${claim} is not parked: it was settled, or its time was over and the ticket went back.`;
  return holdfastError("CLAIM_LOST", message, { id, attempt: Number(claim.slice(37)) });
}

// Lanes: tickets of one group are processed in order, one at a time, on all machines together. A
// group belongs to one of 64 lanes, each with a lease. The process that holds the lease claims the
// first ticket of the lane, and keeps the lease until that ticket is settled.
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { Box } from "../box/box.ts";
import { laneCount, laneOf } from "../box/layout.ts";
import { ticketKind } from "../model/manifest.ts";
import { findTicketName, inLaneOf, type TicketName } from "../model/ticket-name.ts";
import { findReadableTicket } from "../publish/staged.ts";
import { returnDeadTickets } from "../recover/return-tickets.ts";
import { claimTicket, type ClaimResult } from "./claim.ts";
import type { KeptLeases, Lease } from "./kept-leases.ts";
import { findParked } from "./parked.ts";
import { noteKind } from "./settle.ts";

export interface LaneClaim {
  readonly claim: ClaimResult;
  /** The lease of the lane. It ends when the ticket is settled. */
  readonly lease: Lease;
}

/**
 * Claims the first ticket of a lane in which no other process works. Returns undefined if there is
 * none. Begins with the lanes whose lease this process has kept, then with lane `from`, so that all
 * lanes get their turn.
 */
export async function claimInLane(
  box: Box,
  leases: KeptLeases,
  session: HolderSession,
  from: number,
): Promise<LaneClaim | undefined> {
  const lanes = await usedLanes(box);
  const inTurn = [...lanes.filter((lane) => lane >= from), ...lanes.filter((lane) => lane < from)];
  const kept = new Set(leases.namesOf(prefix));
  for (const lane of [...inTurn.filter((each) => kept.has(leaseName(each))), ...inTurn]) {
    // Listed before the lease is acquired: usually the lane is empty, and the requests for the
    // lease are saved.
    if ((await ticketsOf(box, lane)).length === 0) continue;
    const lease = await leases.tryAcquire(leaseName(lane), session);
    if (lease === undefined) continue;
    let claim: ClaimResult | undefined;
    try {
      // Recovery runs before the first claim under a new lease: a ticket of the previous process
      // must return to its position first.
      const isNew = lease.tickets === 1;
      if (isNew) await returnDeadTickets(box);
      if (!isNew || !(await isWorkedIn(box, lane, session))) claim = await claimFirst(box, lane, session);
    } finally {
      if (claim === undefined) await leases.release(lease);
    }
    if (claim !== undefined) return { claim, lease };
  }
  return undefined;
}

/** True if a ticket waits in any lane. */
export async function hasLaneTicket(box: Box): Promise<boolean> {
  for (const lane of await usedLanes(box)) if ((await ticketsOf(box, lane)).length > 0) return true;
  return false;
}

const prefix = "lanes/";

export function leaseName(lane: number): string {
  return `${prefix}${String(lane).padStart(2, "0")}`;
}

/** Returns the lanes that ever had a ticket. */
export async function usedLanes(box: Box): Promise<number[]> {
  return (await box.names(box.layout.lanes))
    .filter((name) => /^[0-9]{2}$/.test(name) && Number(name) < laneCount)
    .map(Number)
    .sort((a, b) => a - b);
}

/** Returns undefined if the lane is empty, or if its first ticket is parked or due later: those behind it wait. */
async function claimFirst(box: Box, lane: number, session: HolderSession): Promise<ClaimResult | undefined> {
  // Parked claims are listed before the tickets: a claim that returns between the two listings is
  // in one of them.
  const parked = await findParked(box);
  const [first] = await ticketsOf(box, lane);
  if (first === undefined) return undefined;
  const { name, path } = first;
  for (const each of parked)
    if ((each.name.second ?? Infinity) < (name.rank ?? 0) && (await isOfLane(box, each.path, lane))) return undefined;
  if (name.claims > 0) {
    // Older builds record the due time only in the note.
    const dueMs = name.second ?? (await findDueMs(box, name));
    if (dueMs !== undefined && dueMs > (await box.nowMs())) return undefined;
  }
  return await claimTicket(box, session, path, inLaneOf(name, name.rank ?? 0));
}

/**
 * Returns true for an unreadable ticket: it blocks the lane until it is due, and then its next
 * claim reports the damage.
 */
async function isOfLane(box: Box, path: string, lane: number): Promise<boolean> {
  try {
    const group = (await findRecord(box.disk, ticketKind, path))?.manifest.group;
    return group !== undefined && laneOf(group) === lane;
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return true;
  }
}

/**
 * True if another session has claimed a ticket of this lane. A third process may have judged that
 * session dead and dropped its lease, while this process has not observed it long enough to return
 * its ticket.
 */
async function isWorkedIn(box: Box, lane: number, { holder }: HolderSession): Promise<boolean> {
  for (const other of await box.names(box.layout.processings)) {
    if (other === holder.id) continue;
    const directory = box.layout.processing(other);
    for (const text of await box.names(directory)) {
      if (findTicketName(text)?.rank === undefined) continue;
      const group = (await findReadableTicket(box, `${directory}/${text}`))?.manifest.group;
      if (group !== undefined && laneOf(group) === lane) return true;
    }
  }
  return false;
}

interface LaneTicket {
  readonly name: TicketName;
  readonly path: string;
}

/** Returns the tickets of a lane in order. */
async function ticketsOf(box: Box, lane: number): Promise<LaneTicket[]> {
  const directory = `${box.layout.lane(lane)}/incoming`;
  const tickets: LaneTicket[] = [];
  for (const text of await box.names(directory)) {
    const name = findTicketName(text);
    if (name?.rank !== undefined) tickets.push({ name, path: `${directory}/${text}` });
  }
  return tickets.sort((a, b) => (a.name.rank ?? 0) - (b.name.rank ?? 0));
}

/** Returns when a ticket is due for its next attempt. Ignores a damaged note. */
async function findDueMs(box: Box, { id, claims }: TicketName): Promise<number | undefined> {
  try {
    return (await findRecord(box.disk, noteKind, box.layout.note(id, String(claims))))?.dueMs;
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return undefined;
  }
}

// Lanes: tickets of one group are worked in order, one at a time, on all machines together. A group belongs to
// one of 64 lanes, each with a lease. The process that has the lease takes the first ticket of the lane, and
// keeps the lease until that ticket is settled.
import { hasErrno } from "../../ports/disk-error.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { Box } from "../box/box.ts";
import { laneCount } from "../box/layout.ts";
import { findTicketName, type TicketName } from "../model/ticket-name.ts";
import { reap } from "../recover/reap.ts";
import { claimTicket, type Claim } from "./claim.ts";
import { noteKind } from "./settle.ts";

/** Leases on names, of which each has one holder among all processes. */
export interface LeaseTaker {
  tryAcquire(name: string): Promise<PathHold | undefined>;
}

export interface LaneClaim {
  readonly claim: Claim;
  /** Of the lane: to be released when the ticket is settled. */
  readonly lease: PathHold;
}

/** The first ticket of a lane that no other process works in; undefined when there is none. Begins with lane `from`, so that all lanes have their turn. */
export async function claimInLane(box: Box, leases: LeaseTaker, from: number): Promise<LaneClaim | undefined> {
  for (let step = 0; step < laneCount; step++) {
    const lane = (from + step) % laneCount;
    // A look without the lease: mostly there is nothing, and then nothing else is asked.
    if ((await ticketsOf(box, lane)).length === 0) continue;
    const lease = await leases.tryAcquire(leaseName(lane));
    if (lease === undefined) continue;
    let claim: Claim | undefined;
    try {
      // What the process before had in hand comes first: it goes back to its place before the next one is taken.
      await reap(box);
      claim = await claimFirst(box, lane);
    } finally {
      if (claim === undefined) await lease.release();
    }
    if (claim !== undefined) return { claim, lease };
  }
  return undefined;
}

export function leaseName(lane: number): string {
  return `lanes/${String(lane).padStart(2, "0")}`;
}

/** Undefined when the lane is empty, or its first ticket is to be tried later: those behind it wait. */
async function claimFirst(box: Box, lane: number): Promise<Claim | undefined> {
  const [first] = await ticketsOf(box, lane);
  if (first === undefined) return undefined;
  const { name, path } = first;
  if (name.claims > 0) {
    const note = await findRecord(box.disk, noteKind, box.layout.note(name.id, String(name.claims)));
    if (note?.dueMs !== undefined && note.dueMs > (await box.nowMs())) return undefined;
  }
  const session = await box.ground.session();
  return await claimTicket(box, session, path, await box.processing(session), name);
}

interface LaneTicket {
  readonly name: TicketName;
  readonly path: string;
}

/** In their order. */
async function ticketsOf(box: Box, lane: number): Promise<LaneTicket[]> {
  const directory = `${box.layout.lane(lane)}/incoming`;
  try {
    const tickets: LaneTicket[] = [];
    for (const text of await box.disk.list(directory)) {
      const name = findTicketName(text);
      if (name?.rank !== undefined) tickets.push({ name, path: `${directory}/${text}` });
    }
    return tickets.sort((a, b) => (a.name.rank ?? 0) - (b.name.rank ?? 0));
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return [];
    throw error;
  }
}

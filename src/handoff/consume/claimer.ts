// Chooses the ticket that this process claims next: from the lanes or from `incoming`, under the
// leases that it needs. It always acquires them in this order: in flight, then lane, then the
// ticket.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { laneCount, laneOf } from "../box/layout.ts";
import { IncomingTickets, type ClaimResult, type ClaimedTicket } from "./claim.ts";
import { KeptLeases, type Lease, type LeaseTaker } from "./kept-leases.ts";
import { claimInLane, hasLaneTicket, leaseName } from "./lanes.ts";
import { unpark } from "./parked.ts";

/** A claim, and the leases that end when it is settled. */
export interface LeasedClaim<C extends ClaimResult = ClaimResult> {
  readonly claim: C;
  readonly leases: readonly Lease[];
}

/** For this long after it found the lanes empty, this process checks `incoming` first. */
const lanesPauseMs = 20;

export class Claimer {
  readonly #box: Box;
  readonly #incoming: IncomingTickets;
  readonly #leases: KeptLeases;
  readonly #inFlightMax: number | undefined;
  /**
   * Counts claims: lanes and `incoming` take turns at being checked first, and each search of the
   * lanes begins with another lane.
   */
  #turn = 0;
  #lanesEmptyAtMs = -Infinity;

  /** `inFlightMax`: how many deliveries may be in progress in all processes together. Default: no limit. */
  constructor(box: Box, leases: LeaseTaker, inFlightMax?: number) {
    this.#box = box;
    this.#incoming = new IncomingTickets(box);
    this.#leases = new KeptLeases(leases, box.ground.ports.clock);
    this.#inFlightMax = inFlightMax;
  }

  /** Claims the next ticket. Returns undefined if there is none, or if too many are in flight. */
  async claim(): Promise<LeasedClaim | undefined> {
    const session = await this.#box.ground.session();
    const inFlight = await this.#takeInFlight(session);
    if (inFlight === undefined) return undefined;
    let found: LeasedClaim | undefined;
    try {
      found = await this.#claimAny(session);
    } finally {
      if (found === undefined) for (const lease of inFlight) await this.#leases.release(lease);
    }
    return found && { claim: found.claim, leases: [...found.leases, ...inFlight] };
  }

  /** Claims a parked ticket for this process. Throws CLAIM_LOST if it is no longer parked. */
  async unpark(parked: string, signal: AbortSignal): Promise<LeasedClaim<ClaimedTicket>> {
    const session = await this.#box.ground.session();
    const leases: Lease[] = [];
    try {
      // The lease is acquired before the ticket leaves `parked/`: there it blocks its lane.
      const claim = await unpark(this.#box, session, parked, async (group) => {
        leases.push(await this.#leases.acquire(leaseName(laneOf(group)), session, signal));
      });
      return { claim, leases };
    } catch (error) {
      for (const lease of leases) await this.#leases.release(lease);
      throw error;
    }
  }

  /** Call it when the claim is settled, given back or lost. */
  async end({ claim, leases }: LeasedClaim): Promise<void> {
    this.#box.inProgress.delete(claim.path);
    for (const lease of leases) await this.#leases.end(lease);
  }

  async close(): Promise<void> {
    await this.#leases.close();
  }

  async #claimAny(session: HolderSession): Promise<LeasedClaim | undefined> {
    const { clock } = this.#box.ground.ports;
    let failure: Error | undefined;
    const inLane = async (): Promise<LeasedClaim | undefined> => {
      const from = this.#turn % laneCount;
      const found = await claimInLane(this.#box, this.#leases, session, from).catch((error: unknown) => {
        // The lock table cannot be read. Tickets without a group can still be claimed: they need no
        // lock.
        if (!isUnreadable(error)) throw error;
        failure = error as Error;
        return undefined;
      });
      if (found === undefined) this.#lanesEmptyAtMs = clock.monotonicMs();
      return found && { claim: found.claim, leases: [found.lease] };
    };
    const inBox = async (): Promise<LeasedClaim | undefined> => {
      const claim = await this.#incoming.claim(session);
      return claim && { claim, leases: [] };
    };
    this.#turn++;
    const isLaneFirst = this.#turn % 2 === 0 && clock.monotonicMs() - this.#lanesEmptyAtMs >= lanesPauseMs;
    const [first, second] = isLaneFirst ? [inLane, inBox] : [inBox, inLane];
    const found = (await first()) ?? (await second());
    if (found === undefined && failure !== undefined) throw failure;
    return found;
  }

  /**
   * Acquires one of the leases that limit deliveries in progress. Returns an empty list if there is
   * no limit, and undefined if all leases are taken.
   */
  async #takeInFlight(session: HolderSession): Promise<readonly Lease[] | undefined> {
    const max = this.#inFlightMax;
    if (max === undefined) return [];
    // Checked before the lease is acquired: usually there is no ticket, and the requests for the
    // lease are saved.
    if (!(await this.#incoming.hasSome()) && !(await hasLaneTicket(this.#box))) return undefined;
    const names = Array.from({ length: max }, (_, step) => inFlightName((this.#turn + step) % max));
    for (const name of new Set([...this.#leases.namesOf(inFlightPrefix), ...names])) {
      const lease = await this.#leases.tryAcquire(name, session);
      if (lease !== undefined) return [lease];
    }
    return undefined;
  }
}

const inFlightPrefix = "in-flight/";

function inFlightName(number: number): string {
  return `${inFlightPrefix}${number}`;
}

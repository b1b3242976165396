// Where deliveries come from: claims tickets one by one, and settles at once those that no handler is to see:
// damaged, expired, tried too often, not what their manifest says, or done before.
import { isHoldfastError } from "../../errors.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { Box } from "../box/box.ts";
import { laneCount } from "../box/layout.ts";
import { findCommitted, type LedgerEntry } from "../ledger/ledger.ts";
import { attemptOf } from "../model/ticket-name.ts";
import { claimNext, type Claim } from "./claim.ts";
import { OpenDelivery, type DeliveryParts } from "./delivery.ts";
import { claimInLane, type LeaseTaker } from "./lanes.ts";
import { checkPayload } from "./payload-check.ts";
import { archive, failForGood, giveBack, type NoteOutcome } from "./settle.ts";

export interface SourceParts extends Pick<DeliveryParts, "materialise" | "send" | "note"> {
  readonly box: Box;
  readonly leases: LeaseTaker;
  readonly rollForward: (entry: LedgerEntry) => Promise<void>;
  /** How many deliveries all processes together may have in hand. Default: any number. */
  readonly inFlightMax?: number | undefined;
}

interface Found {
  readonly claim: Claim;
  /** What is released when the ticket is settled. */
  readonly leases: readonly PathHold[];
}

export class DeliverySource {
  readonly #parts: SourceParts;
  /** Lanes and `incoming` are asked first in turn, and each time another lane. */
  #turn = 0;

  constructor(parts: SourceParts) {
    this.#parts = parts;
  }

  /** The next delivery, its files checked; undefined when there is none now. */
  async next(attemptsMax: number, signal: AbortSignal): Promise<OpenDelivery | undefined> {
    while (!signal.aborted) {
      const found = await this.#claim();
      if (found === undefined) return undefined;
      let delivery: OpenDelivery | undefined;
      try {
        delivery = await this.#open(found, attemptsMax, signal);
      } finally {
        if (delivery === undefined) await this.#leave(found);
      }
      if (delivery !== undefined) return delivery;
    }
    return undefined;
  }

  /** Always in this order: in flight, lane, ticket. */
  async #claim(): Promise<Found | undefined> {
    const inFlight = await this.#takeInFlight();
    if (inFlight === undefined) return undefined;
    let found: Found | undefined;
    try {
      found = await this.#claimAny();
    } finally {
      if (found === undefined) await release(inFlight);
    }
    return found && { claim: found.claim, leases: [...found.leases, ...inFlight] };
  }

  async #claimAny(): Promise<Found | undefined> {
    const { box, leases } = this.#parts;
    const inLane = async (): Promise<Found | undefined> => {
      const found = await claimInLane(box, leases, this.#turn % laneCount);
      return found && { claim: found.claim, leases: [found.lease] };
    };
    const inBox = async (): Promise<Found | undefined> => {
      const claim = await claimNext(box);
      return claim && { claim, leases: [] };
    };
    this.#turn++;
    const [first, second] = this.#turn % 2 === 0 ? [inLane, inBox] : [inBox, inLane];
    return (await first()) ?? (await second());
  }

  /** One of the leases that stand for deliveries in hand; none needed without a limit; undefined when all are taken. */
  async #takeInFlight(): Promise<readonly PathHold[] | undefined> {
    const { inFlightMax, leases } = this.#parts;
    if (inFlightMax === undefined) return [];
    for (let step = 0; step < inFlightMax; step++) {
      const hold = await leases.tryAcquire(`in-flight/${(this.#turn + step) % inFlightMax}`);
      if (hold !== undefined) return [hold];
    }
    return undefined;
  }

  async #leave({ claim, leases }: Found): Promise<void> {
    this.#parts.box.inHand.delete(claim.path);
    await release(leases);
  }

  /** Undefined when the ticket was settled here. */
  async #open({ claim, leases }: Found, attemptsMax: number, signal: AbortSignal): Promise<OpenDelivery | undefined> {
    const { box, rollForward } = this.#parts;
    const fail = async (outcome: NoteOutcome, reason: string): Promise<undefined> => {
      await unlessLost(failForGood(box, claim, outcome, reason));
    };
    if ("damage" in claim) return await fail("fail", claim.damage.message);
    const { manifest } = claim.ticket;
    const attempt = attemptOf(claim.name);
    // Also what was tried too often may be done: its worker died between the commit and the archive.
    const before = await findCommitted(box, box.layout.ledger(manifest.key, claim.name.replays));
    if (before !== undefined) {
      await rollForward(before);
      await archive(box, claim, before);
      return undefined;
    }
    if (attempt > attemptsMax)
      return await fail("lost", `${attempt - 1} attempts ended without an answer: the worker died, or lost its claim.`);
    if (manifest.expiresAt !== undefined && manifest.expiresAt.getTime() <= (await box.nowMs()))
      return await fail("expired", `It was not delivered before ${manifest.expiresAt.toISOString()}.`);
    try {
      await checkPayload(box, claim.ticket, signal);
    } catch (error) {
      if (isHoldfastError(error, "PAYLOAD_MISMATCH")) return await fail("mismatch", error.message);
      if (!signal.aborted) throw error;
      await giveBack(box, claim);
      return undefined;
    }
    return new OpenDelivery({ ...this.#parts, claim, onSettled: () => void this.#leave({ claim, leases }) });
  }
}

/** A lease that cannot be released now ends with this process. */
async function release(leases: readonly PathHold[]): Promise<void> {
  for (const lease of leases) await lease.release().catch(() => undefined);
}

/** Another process has the ticket by now: it is its affair. */
async function unlessLost(settling: Promise<void>): Promise<void> {
  try {
    await settling;
  } catch (error) {
    if (!isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST")) throw error;
  }
}

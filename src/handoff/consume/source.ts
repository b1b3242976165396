// Where deliveries come from: claims tickets one by one, and settles at once those that no handler is to see:
// damaged, expired, tried too often, not what their manifest says, or done before.
import { isHoldfastError } from "../../errors.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { Box } from "../box/box.ts";
import { laneCount, laneOf } from "../box/layout.ts";
import { findCommitted, type LedgerEntry } from "../ledger/ledger.ts";
import { isUnreadable } from "../../durable/publish/record-file.ts";
import type { DeadLetter } from "../model/handoff.ts";
import { attemptOf } from "../model/ticket-name.ts";
import { Incoming, type Claim, type Claimed } from "./claim.ts";
import { OpenDelivery, type DeliveryParts } from "./delivery.ts";
import { KeptLeases, type Lease, type LeaseTaker } from "./kept-leases.ts";
import { claimInLane, hasLaneTicket, leaseName } from "./lanes.ts";
import { unpark } from "./parked.ts";
import { checkPayload } from "./payload-check.ts";
import { archive, failForGood, giveBack, retryLater, type NoteOutcome } from "./settle.ts";

export interface SourceParts extends Pick<DeliveryParts, "send" | "rollForward"> {
  readonly box: Box;
  readonly leases: LeaseTaker;
  /** How many deliveries all processes together may have in hand. Default: any number. */
  readonly inFlightMax?: number | undefined;
}

interface Found {
  readonly claim: Claim;
  /** What is ended when the ticket is settled. */
  readonly leases: readonly Lease[];
}

/** After a look at the lanes that found nothing, tickets without a group come first for so long. */
const lanesPauseMs = 20;

export class DeliverySource {
  readonly #parts: SourceParts;
  readonly #incoming: Incoming;
  readonly #leases: KeptLeases;
  readonly #open = new Set<OpenDelivery>();
  /** Lanes and `incoming` are asked first in turn, and each time another lane. */
  #turn = 0;
  #lanesEmptyAtMs = -Infinity;

  constructor(parts: SourceParts) {
    this.#parts = parts;
    this.#incoming = new Incoming(parts.box);
    this.#leases = new KeptLeases(parts.leases, parts.box.ground.ports.clock);
  }

  /** The next delivery, its files checked; undefined when there is none now. */
  async next(
    attemptsMax: number,
    signal: AbortSignal,
    onDeadLetter?: (ticket: DeadLetter) => void,
  ): Promise<OpenDelivery | undefined> {
    while (!signal.aborted) {
      const found = await this.#claim();
      if (found === undefined) return undefined;
      let delivery: OpenDelivery | undefined;
      try {
        delivery = await this.#check(found, attemptsMax, signal, onDeadLetter);
      } finally {
        if (delivery === undefined) await this.#leave(found);
      }
      if (delivery !== undefined) return delivery;
    }
    return undefined;
  }

  /** A parked claim, in the hands of this process. CLAIM_LOST when it is not parked any more. */
  async resume(claimed: string, signal: AbortSignal): Promise<OpenDelivery> {
    const { box } = this.#parts;
    const session = await box.ground.session();
    const leases: Lease[] = [];
    try {
      // Before the ticket leaves the place where it holds up its lane.
      const claim = await unpark(box, session, claimed, async (group) => {
        leases.push(await this.#leases.acquire(leaseName(laneOf(group)), session, signal));
      });
      return this.#deliver({ claim, leases }, claim);
    } catch (error) {
      for (const lease of leases) await this.#leases.release(lease);
      throw error;
    }
  }

  /** Gives back what is in hand. */
  async close(): Promise<void> {
    // One that cannot be moved now is given back with the session.
    await Promise.allSettled([...this.#open].map((delivery) => delivery.giveBack()));
    await this.#leases.close();
  }

  /** Always in this order: in flight, lane, ticket. */
  async #claim(): Promise<Found | undefined> {
    const session = await this.#parts.box.ground.session();
    const inFlight = await this.#takeInFlight(session);
    if (inFlight === undefined) return undefined;
    let found: Found | undefined;
    try {
      found = await this.#claimAny(session);
    } finally {
      if (found === undefined) for (const lease of inFlight) await this.#leases.release(lease);
    }
    return found && { claim: found.claim, leases: [...found.leases, ...inFlight] };
  }

  async #claimAny(session: HolderSession): Promise<Found | undefined> {
    const { box } = this.#parts;
    const { clock } = box.ground.ports;
    const inLane = async (): Promise<Found | undefined> => {
      const found = await claimInLane(box, this.#leases, session, this.#turn % laneCount);
      if (found === undefined) this.#lanesEmptyAtMs = clock.monotonicMs();
      return found && { claim: found.claim, leases: [found.lease] };
    };
    const inBox = async (): Promise<Found | undefined> => {
      const claim = await this.#incoming.claim(session);
      return claim && { claim, leases: [] };
    };
    this.#turn++;
    const isLaneFirst = this.#turn % 2 === 0 && clock.monotonicMs() - this.#lanesEmptyAtMs >= lanesPauseMs;
    const [first, second] = isLaneFirst ? [inLane, inBox] : [inBox, inLane];
    return (await first()) ?? (await second());
  }

  /** One of the leases that stand for deliveries in hand; none needed without a limit; undefined when all are taken. */
  async #takeInFlight(session: HolderSession): Promise<readonly Lease[] | undefined> {
    const { inFlightMax, box } = this.#parts;
    if (inFlightMax === undefined) return [];
    // A look without the lease: mostly there is nothing, and then nothing else is asked.
    if (!(await this.#incoming.hasSome()) && !(await hasLaneTicket(box))) return undefined;
    const names = Array.from({ length: inFlightMax }, (_, step) => inFlightName((this.#turn + step) % inFlightMax));
    for (const name of new Set([...this.#leases.namesOf(inFlightPrefix), ...names])) {
      const lease = await this.#leases.tryAcquire(name, session);
      if (lease !== undefined) return [lease];
    }
    return undefined;
  }

  async #leave({ claim, leases }: Found): Promise<void> {
    this.#parts.box.inHand.delete(claim.path);
    for (const lease of leases) await this.#leases.end(lease);
  }

  #deliver(found: Found, claim: Claimed, onDeadLetter?: (ticket: DeadLetter) => void): OpenDelivery {
    const onEnded = async (): Promise<void> => {
      this.#open.delete(delivery);
      await this.#leave(found);
    };
    const delivery = new OpenDelivery({ ...this.#parts, claim, onEnded, onDeadLetter });
    this.#open.add(delivery);
    return delivery;
  }

  /** Undefined when the ticket was settled here, or was lost on the way. */
  async #check(
    found: Found,
    attemptsMax: number,
    signal: AbortSignal,
    onDeadLetter?: (ticket: DeadLetter) => void,
  ): Promise<OpenDelivery | undefined> {
    const { claim } = found;
    const { box } = this.#parts;
    const fail = async (outcome: NoteOutcome, reason: string): Promise<undefined> => {
      const isDead = await unlessLost(failForGood(box, claim, outcome, reason));
      if (isDead) onDeadLetter?.({ id: claim.name.id, attempt: attemptOf(claim.name), outcome, reason });
    };
    if ("damage" in claim) return await fail("fail", claim.damage.message);
    const { manifest } = claim.ticket;
    const verdict = await this.#findVerdict(claim, attemptsMax, signal);
    // Also what was tried too often may be done: its worker died between the commit and the archive. What ends
    // here for good is looked up so that no old answer of a share counts.
    const path = box.layout.ledger(manifest.key, claim.name.replays);
    let before: LedgerEntry | undefined;
    try {
      before = await findCommitted(box, path, { isSure: verdict !== undefined && verdict !== "stopped" });
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return await fail("fail", `The ledger's entry of its key cannot be read: ${reasonOf(error)} ${repairAdvice}`);
    }
    if (before !== undefined) return await this.#finish(claim, before, attemptsMax, fail);
    if (verdict === "stopped") await giveBack(box, claim);
    else if (verdict !== undefined) return await fail(verdict.outcome, verdict.reason);
    // It slept meanwhile: the ticket goes back.
    else if (!claim.session.isOver) return this.#deliver(found, claim, onDeadLetter);
    return undefined;
  }

  /** It is done: what was sent with it is published, and it goes to the archive. */
  async #finish(
    claim: Claimed,
    before: LedgerEntry,
    attemptsMax: number,
    fail: (outcome: NoteOutcome, reason: string) => Promise<undefined>,
  ): Promise<undefined> {
    const { box, rollForward } = this.#parts;
    try {
      await rollForward(before);
    } catch (error) {
      if (isLost(error)) throw error;
      const reason = `It is done, but what it sends cannot be published: ${reasonOf(error)}`;
      const attempt = attemptOf(claim.name);
      if (attempt > attemptsMax) return await fail("fail", `${reason} Replay it when that is mended.`);
      await unlessLost(retryLater(box, claim, sendAgainMs * 2 ** Math.min(attempt, 10), reason));
      return undefined;
    }
    await archive(box, claim, before);
    return undefined;
  }

  /** Why no handler is to see it; "stopped" when there was no time to find out. */
  async #findVerdict(
    claim: Claimed,
    attemptsMax: number,
    signal: AbortSignal,
  ): Promise<Verdict | "stopped" | undefined> {
    const { box } = this.#parts;
    const { expiresAt } = claim.ticket.manifest;
    const attempt = attemptOf(claim.name);
    if (attempt > attemptsMax) {
      const reason = `${attempt - 1} attempts ended without an answer: the worker died, or lost its claim.`;
      return { outcome: "lost", reason };
    }
    if (expiresAt !== undefined && expiresAt.getTime() <= (await box.nowMs()))
      return { outcome: "expired", reason: `It was not delivered before ${expiresAt.toISOString()}.` };
    try {
      await checkPayload(box, claim.ticket, signal);
    } catch (error) {
      if (isHoldfastError(error, "PAYLOAD_MISMATCH")) return { outcome: "mismatch", reason: error.message };
      if (!signal.aborted) throw error;
      return "stopped";
    }
    return undefined;
  }
}

/** How long it takes until what could not be sent is tried again; doubled with each attempt. */
const sendAgainMs = 500;
const repairAdvice = "`holdfast handoff verify DIR --repair` moves the entry aside; then replay the ticket.";

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isLost(error: unknown): boolean {
  return isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST", "CLOSED");
}

interface Verdict {
  readonly outcome: NoteOutcome;
  readonly reason: string;
}

const inFlightPrefix = "in-flight/";

function inFlightName(number: number): string {
  return `${inFlightPrefix}${number}`;
}

/** False when another process has the ticket by now: it is its affair. */
async function unlessLost(settling: Promise<void>): Promise<boolean> {
  try {
    await settling;
    return true;
  } catch (error) {
    if (!isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST")) throw error;
    return false;
  }
}

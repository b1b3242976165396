// Claiming: one rename from `incoming` to a directory of this session. One of many processes wins,
// and the new name counts the attempt, so a ticket that kills its workers is not retried forever.
import { hasErrno } from "../../ports/disk-error.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { assertNotSwept } from "../../durable/publish/staging.ts";
import { getRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { Box } from "../box/box.ts";
import { findMinuteMs } from "../box/layout.ts";
import { priorityMax, ticketKind, type Ticket } from "../model/manifest.ts";
import { waitForScan } from "./scan-gate.ts";
import { claimedOf, findTicketName, formatTicketName, type TicketName } from "../model/ticket-name.ts";

/** About how many tickets one listing has. */
const namesPerListing = 256;
/** How long a listing is used. An urgent ticket waits at most this long. */
const listingMs = 100;
/**
 * After this many lost races on one listing, this process continues at another point of it: other
 * processes are claiming the same names.
 */
const lossesMax = 2;
/**
 * For this many listings after a lost race, this process begins at a random point and not at the
 * first name.
 */
const contendedListings = 8;
/** At most this many minutes are listed. A year has fewer. */
const minutesMax = 1_000_000;
/** The directory of a minute is removed if it is empty this long after that minute. */
const keepMs = 120_000;

export interface ClaimedTicket {
  readonly session: HolderSession;
  readonly name: TicketName;
  readonly path: string;
  readonly ticket: Ticket;
}

/** The ticket that this session claimed; `damage` says why it cannot be read. */
export type ClaimResult =
  | ClaimedTicket
  | { readonly session: HolderSession; readonly name: TicketName; readonly path: string; readonly damage: Error };

/** Claims the next ticket without a group. Returns undefined if there is none. */
export async function claimNext(box: Box): Promise<ClaimResult | undefined> {
  return await new IncomingTickets(box).claim(await box.ground.session());
}

/** Returns undefined if another process has it. */
export async function claimTicket(
  box: Box,
  session: HolderSession,
  from: string,
  name: TicketName,
): Promise<ClaimResult | undefined> {
  const claimed = claimedOf(name);
  const path = await moveToHolder(box, session, from, claimed);
  if (path === undefined) return undefined;
  try {
    return { session, name: claimed, path, ticket: await getRecord(box.disk, ticketKind, path) };
  } catch (error) {
    if (isUnreadable(error)) return { session, name: claimed, path, damage: error as Error };
    // From here on it does not count as in progress, so the next recovery returns it.
    box.inProgress.delete(path);
    if (!hasErrno(error, "ENOENT")) throw error;
    // Recovery has already returned the ticket: this process slept and was judged dead. Throws
    // LOCK_LOST.
    await assertNotSwept(session.staging, session.temp);
    return undefined;
  }
}

/**
 * Moves the ticket at `from` to this session's claims, and returns its path there. Returns
 * undefined if another process has it. Throws LOCK_LOST if this session was judged dead.
 */
export async function moveToHolder(
  box: Box,
  session: HolderSession,
  from: string,
  name: TicketName,
): Promise<string | undefined> {
  // The staging directory is created once, before the session's first claim. After a sweeper
  // removed it, this session can commit nothing.
  await box.staging(session);
  const path = `${await box.processing(session)}/${formatTicketName(name)}`;
  // The target path belongs to this session. If two callers of this process renamed the same
  // ticket, both would find it at the target and believe that they had moved it.
  if (box.inProgress.has(path)) return undefined;
  box.inProgress.add(path);
  let isClaimed = false;
  try {
    // Not synced: after a power cut that reverts the claim, its process no longer exists.
    const isMoved = await moveOnce(box.disk, from, path);
    // After the move, not before: a process that stops between the two must not claim unseen.
    if (isMoved) await waitForScan(box);
    isClaimed = isMoved;
  } catch (error) {
    // The ticket exists and the directory does not: other processes judged this one dead.
    if (hasErrno(error, "ENOENT")) session.reportSwept(session.temp);
    session.throwIfOver();
    throw error;
  } finally {
    if (!isClaimed) box.inProgress.delete(path);
  }
  return isClaimed ? path : undefined;
}

interface WaitingTicket {
  readonly priority: number;
  readonly name: TicketName;
  readonly path: string;
}

/**
 * Tickets without a group wait in a directory per minute, below one per priority. Some of the names
 * are listed and then claimed one by one, so one listing serves many tickets.
 */
export class IncomingTickets {
  readonly #box: Box;
  #waiting: WaitingTicket[] = [];
  #listedAtMs = -Infinity;
  /** True if the listing includes all tickets. */
  #isAll = false;
  #listing: Promise<void> | undefined;
  #losses = 0;
  #contendedListings = 0;

  constructor(box: Box) {
    this.#box = box;
  }

  /**
   * Claims the most urgent ticket of the listing; of equally urgent ones, the oldest. Returns
   * undefined if there is none.
   */
  async claim(session: HolderSession): Promise<ClaimResult | undefined> {
    if (!this.#isFresh()) this.#waiting = [];
    // The first round uses the rest of the listing, the second a new one.
    for (let listings = 0; ;) {
      for (let waiting = this.#next(); waiting !== undefined; waiting = this.#next()) {
        const claim = await claimTicket(this.#box, session, waiting.path, waiting.name);
        if (claim !== undefined) {
          this.#losses = 0;
          return claim;
        }
        this.#losses++;
        this.#contendedListings = contendedListings;
      }
      if (listings > 0 && this.#isAll) return undefined;
      await this.#list();
      listings++;
      if (this.#waiting.length === 0) return undefined;
    }
  }

  /** True if there may be a ticket to claim. */
  async hasSome(): Promise<boolean> {
    if (this.#waiting.length === 0 || !this.#isFresh()) await this.#list();
    return this.#waiting.length > 0;
  }

  #isFresh(): boolean {
    return this.#box.ground.ports.clock.monotonicMs() - this.#listedAtMs < listingMs;
  }

  #next(): WaitingTicket | undefined {
    if (this.#losses >= lossesMax) this.#goElsewhere();
    return this.#waiting.shift();
  }

  /** Continues at a random point, among tickets that are as urgent as the next one. */
  #goElsewhere(): void {
    this.#losses = 0;
    const [next] = this.#waiting;
    const lessUrgent = this.#waiting.findIndex(({ priority }) => priority !== next?.priority);
    const count = lessUrgent === -1 ? this.#waiting.length : lessUrgent;
    const skipped = this.#waiting.splice(0, Math.floor(this.#box.ground.ports.random.fraction() * count));
    this.#waiting.splice(count - skipped.length, 0, ...skipped);
  }

  /** Lists the tickets, once for all concurrent callers. */
  async #list(): Promise<void> {
    this.#listing ??= this.#listNow().finally(() => (this.#listing = undefined));
    await this.#listing;
  }

  async #listNow(): Promise<void> {
    const found: WaitingTicket[] = [];
    this.#isAll = true;
    const { clock } = this.#box.ground.ports;
    const listedAtMs = clock.monotonicMs();
    for (let priority = 0; priority <= priorityMax && found.length < namesPerListing; priority++) {
      const parent = this.#box.layout.incoming(priority);
      const minutes = (await this.#box.names(parent, minutesMax)).filter((name) => findMinuteMs(name) !== undefined);
      for (const minute of minutes.sort()) {
        if (found.length >= namesPerListing) break;
        found.push(...(await this.#ticketsIn(priority, `${parent}/${minute}`, minute)));
      }
    }
    if (found.length >= namesPerListing) this.#isAll = false;
    this.#waiting = found;
    this.#listedAtMs = listedAtMs;
    if (this.#contendedListings === 0) return;
    this.#contendedListings--;
    this.#goElsewhere();
  }

  /** Returns some of the tickets in a directory. Ignores foreign files, however many there are. */
  async #ticketsIn(priority: number, directory: string, minute: string): Promise<WaitingTicket[]> {
    for (let count = namesPerListing; ; count *= 16) {
      const names = await this.#box.names(directory, count);
      const tickets: WaitingTicket[] = [];
      for (const text of names) {
        const name = findTicketName(text);
        if (name !== undefined) tickets.push({ priority, name, path: `${directory}/${text}` });
      }
      if (names.length === 0) await removeIfPast(this.#box, directory, minute);
      if (names.length === count && tickets.length > 0) this.#isAll = false;
      if (names.length < count || tickets.length > 0) return tickets;
    }
  }
}

/**
 * Only `rmdir` proves that the directory is empty: it fails if a ticket has just arrived, and a
 * publisher recreates a directory that is gone.
 */
async function removeIfPast(box: Box, directory: string, minute: string): Promise<void> {
  if ((findMinuteMs(minute) ?? Infinity) + keepMs > (await box.nowMs())) return;
  await box.disk.rmdir(directory).catch(() => undefined);
}

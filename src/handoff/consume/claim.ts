// Claiming: one rename from `incoming` to a directory of this session. Of many processes one wins, and the new
// name counts the attempt, so that a ticket which kills its workers comes to its end.
import { hasErrno } from "../../ports/disk-error.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { assertNotSwept } from "../../durable/publish/staging.ts";
import { getRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { Box } from "../box/box.ts";
import { findMinuteMs } from "../box/layout.ts";
import { priorityMax, ticketKind, type Ticket } from "../model/manifest.ts";
import { claimedOf, findTicketName, formatTicketName, type TicketName } from "../model/ticket-name.ts";

/** How many tickets are taken from the directories at a time. */
const namesPerLook = 256;
/** For so long a listing is worked off before the next look: an urgent ticket waits no longer. */
const listingMs = 100;
/** After so many lost races other processes work on the same names: this one goes elsewhere in them. */
const lossesMax = 2;
/** For so many listings after a lost race this process does not begin where the others begin. */
const crowdedLooks = 8;
/** More than there are minutes in a year. */
const minutesMax = 1_000_000;
/** A directory that is empty for so long after its minute is removed. */
const keepMs = 120_000;

export interface Claimed {
  readonly session: HolderSession;
  readonly name: TicketName;
  readonly path: string;
  readonly ticket: Ticket;
}

/** The ticket that this session got; `damage` says why it cannot be read. */
export type Claim =
  | Claimed
  | { readonly session: HolderSession; readonly name: TicketName; readonly path: string; readonly damage: Error };

/** The next ticket without a group that this process gets; undefined when there is none. */
export async function claimNext(box: Box): Promise<Claim | undefined> {
  return await new Incoming(box).claim(await box.ground.session());
}

/** Undefined when another process has it. */
export async function claimTicket(
  box: Box,
  session: HolderSession,
  from: string,
  name: TicketName,
): Promise<Claim | undefined> {
  const claimed = claimedOf(name);
  const path = await takeInHand(box, session, from, claimed);
  if (path === undefined) return undefined;
  try {
    return { session, name: claimed, path, ticket: await getRecord(box.disk, ticketKind, path) };
  } catch (error) {
    if (isUnreadable(error)) return { session, name: claimed, path, damage: error as Error };
    // Not in hand any more: the next round of recovery gives it back.
    box.inHand.delete(path);
    if (!hasErrno(error, "ENOENT")) throw error;
    // It went back already: this process slept, and was taken for dead. LOCK_LOST says so.
    await assertNotSwept(session.staging, session.temp);
    return undefined;
  }
}

/**
 * Moves the ticket in `from` to what this session has in hand; gives its path there. Undefined when another
 * process has it. LOCK_LOST when this session was taken for dead.
 */
export async function takeInHand(
  box: Box,
  session: HolderSession,
  from: string,
  name: TicketName,
): Promise<string | undefined> {
  // Before the first claim of a session, and never again: once it is taken away with what was staged in it,
  // nothing can be committed from it.
  await box.staging(session);
  const path = `${await box.processing(session)}/${formatTicketName(name)}`;
  // The target is a name of this session. Two callers of one process would both find it there, and both believe
  // that they have moved it.
  if (box.inHand.has(path)) return undefined;
  box.inHand.add(path);
  let isClaimed = false;
  try {
    // Without a sync: a claim that a power cut takes back belongs to no process any more.
    isClaimed = await moveOnce(box.disk, from, path);
  } catch (error) {
    // The ticket is there and the directory is not: other processes took this one for dead.
    if (hasErrno(error, "ENOENT")) session.reportSwept(session.temp);
    session.throwIfOver();
    throw error;
  } finally {
    if (!isClaimed) box.inHand.delete(path);
  }
  return isClaimed ? path : undefined;
}

interface Waiting {
  readonly priority: number;
  readonly name: TicketName;
  readonly path: string;
}

/**
 * Where tickets without a group wait: a directory for each minute, below one for each priority. Some of the names
 * are listed, and claimed one by one: a listing is good for many tickets.
 */
export class Incoming {
  readonly #box: Box;
  #waiting: Waiting[] = [];
  #listedAtMs = -Infinity;
  /** Whether the listing had all tickets. */
  #isAll = false;
  #listing: Promise<void> | undefined;
  #losses = 0;
  #crowdedLooks = 0;

  constructor(box: Box) {
    this.#box = box;
  }

  /** The most urgent, then the oldest ticket that this process gets, as far as a listing tells; undefined when there is none. */
  async claim(session: HolderSession): Promise<Claim | undefined> {
    if (!this.#isFresh()) this.#waiting = [];
    // What is left of the listing; then one that is made now.
    for (let looks = 0; ;) {
      for (let waiting = this.#next(); waiting !== undefined; waiting = this.#next()) {
        const claim = await claimTicket(this.#box, session, waiting.path, waiting.name);
        if (claim !== undefined) {
          this.#losses = 0;
          return claim;
        }
        this.#losses++;
        this.#crowdedLooks = crowdedLooks;
      }
      if (looks > 0 && this.#isAll) return undefined;
      await this.#list();
      looks++;
      if (this.#waiting.length === 0) return undefined;
    }
  }

  /** Whether there may be something to claim. */
  async hasSome(): Promise<boolean> {
    if (this.#waiting.length === 0 || !this.#isFresh()) await this.#list();
    return this.#waiting.length > 0;
  }

  #isFresh(): boolean {
    return this.#box.ground.ports.clock.monotonicMs() - this.#listedAtMs < listingMs;
  }

  #next(): Waiting | undefined {
    if (this.#losses >= lossesMax) this.#goElsewhere();
    return this.#waiting.shift();
  }

  /** On at random, among tickets that are as urgent as the next one. */
  #goElsewhere(): void {
    this.#losses = 0;
    const [next] = this.#waiting;
    const lessUrgent = this.#waiting.findIndex(({ priority }) => priority !== next?.priority);
    const count = lessUrgent === -1 ? this.#waiting.length : lessUrgent;
    const skipped = this.#waiting.splice(0, Math.floor(this.#box.ground.ports.random.fraction() * count));
    this.#waiting.splice(count - skipped.length, 0, ...skipped);
  }

  /** One listing for all callers of this moment. */
  async #list(): Promise<void> {
    this.#listing ??= this.#listNow().finally(() => (this.#listing = undefined));
    await this.#listing;
  }

  async #listNow(): Promise<void> {
    const found: Waiting[] = [];
    this.#isAll = true;
    const { clock } = this.#box.ground.ports;
    const listedAtMs = clock.monotonicMs();
    for (let priority = 0; priority <= priorityMax && found.length < namesPerLook; priority++) {
      const parent = this.#box.layout.incoming(priority);
      const minutes = (await this.#box.names(parent, minutesMax)).filter((name) => findMinuteMs(name) !== undefined);
      for (const minute of minutes.sort()) {
        if (found.length >= namesPerLook) break;
        found.push(...(await this.#ticketsIn(priority, `${parent}/${minute}`, minute)));
      }
    }
    if (found.length >= namesPerLook) this.#isAll = false;
    this.#waiting = found;
    this.#listedAtMs = listedAtMs;
    if (this.#crowdedLooks === 0) return;
    this.#crowdedLooks--;
    this.#goElsewhere();
  }

  /** Some of them. Foreign files are left alone, however many there are. */
  async #ticketsIn(priority: number, directory: string, minute: string): Promise<Waiting[]> {
    for (let count = namesPerLook; ; count *= 16) {
      const names = await this.#box.names(directory, count);
      const tickets: Waiting[] = [];
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

/** `rmdir` is the only truth about emptiness: a ticket that arrives meanwhile keeps its directory, or makes it again. */
async function removeIfPast(box: Box, directory: string, minute: string): Promise<void> {
  if ((findMinuteMs(minute) ?? Infinity) + keepMs > (await box.nowMs())) return;
  await box.disk.rmdir(directory).catch(() => undefined);
}

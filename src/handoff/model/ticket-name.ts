// The name of a ticket's file. It carries what changes: how often the ticket was claimed, and when or in
// which order it is due. So each step of a ticket is one rename, and the path that a process knows is its
// fence: a process that comes late finds no file under it.
import { isId } from "../../format/id.ts";

export interface TicketName {
  readonly id: string;
  /** How often it was claimed. Grows with each claim, so that no path is ever used twice. */
  readonly claims: number;
  /** How many of these claims do not count as attempts: they were given back, or were forgiven by a replay. */
  readonly forgiven: number;
  /** How often it was replayed from the archive. Each time has an entry of its own in the ledger. */
  readonly replays: number;
  readonly isDuplicate: boolean;
  /** Of a delayed or parked ticket when it is due, in milliseconds; of one in a lane its place in the order. */
  readonly rank?: number;
  /** Of a parked ticket that came from a lane: its place there, which it keeps. */
  readonly place?: number;
}

const rankDigits = 16;
const pattern =
  /^(?:([0-9]{16})-(?:([0-9]{16})-)?)?([0-9a-z]{36})-([0-9]{1,9})(?:~([0-9]{1,9}))?(?:@([0-9]{1,9}))?(-duplicate)?\.json$/;

export function newTicketName(id: string): TicketName {
  return { id, claims: 0, forgiven: 0, replays: 0, isDuplicate: false };
}

/** How often a worker has tried, or is trying. */
export function attemptOf({ claims, forgiven }: TicketName): number {
  return claims - forgiven;
}

export function formatTicketName(name: TicketName): string {
  const { id, claims, forgiven, replays, isDuplicate, rank, place } = name;
  const parts = [
    ...[rank, place].map((number) => (number === undefined ? "" : `${String(number).padStart(rankDigits, "0")}-`)),
    `${id}-${claims}`,
    forgiven === 0 ? "" : `~${forgiven}`,
    replays === 0 ? "" : `@${replays}`,
    isDuplicate ? "-duplicate" : "",
  ];
  return `${parts.join("")}.json`;
}

/** Undefined for a foreign file, which is left alone. */
export function findTicketName(name: string): TicketName | undefined {
  const match = pattern.exec(name);
  if (match === null) return undefined;
  const [, rank, place, id = "", claims, forgiven = "0", replays = "0", duplicate] = match;
  const counted = {
    id,
    claims: Number(claims),
    forgiven: Number(forgiven),
    replays: Number(replays),
    isDuplicate: duplicate !== undefined,
  };
  // One spelling for each name: what does not come out as it went in was made by another program.
  const found = {
    ...counted,
    ...(rank === undefined ? {} : { rank: Number(rank) }),
    ...(place === undefined ? {} : { place: Number(place) }),
  };
  return isId(id) && counted.forgiven <= counted.claims && formatTicketName(found) === name ? found : undefined;
}

/** More than a name can say. */
const claimsMax = 999_999_999;

/** The same ticket, claimed once more. One of a lane keeps its place, for the case that it goes back there. */
export function claimedOf(name: TicketName): TicketName {
  return { ...name, claims: Math.min(name.claims + 1, claimsMax) };
}

/** The same ticket without a place in an order. */
export function unrankedOf({ rank: _rank, place: _place, ...name }: TicketName): TicketName {
  return name;
}

/** The same ticket, parked until `dueMs`. */
export function parkedOf(name: TicketName, dueMs: number): TicketName {
  return { ...unrankedOf(name), rank: dueMs, ...(name.rank === undefined ? {} : { place: name.rank }) };
}

/** The same ticket, as it was before it was parked. */
export function unparkedOf(name: TicketName): TicketName {
  return { ...unrankedOf(name), ...(name.place === undefined ? {} : { rank: name.place }) };
}

// The name of a ticket's file. It carries the state that changes: the number of claims, and the due
// time or the position in a lane. Each step of a ticket is therefore one rename, and the path that
// a process knows is its fence: a late process finds no file there.
import { isId } from "../../format/id.ts";

export interface TicketName {
  readonly id: string;
  /** Number of claims. It grows with each claim, so no path is ever used twice. */
  readonly claims: number;
  /**
   * How many of these claims do not count as attempts, because the worker gave the ticket back or a
   * replay reset the count.
   */
  readonly forgiven: number;
  /** Number of replays from the archive. Each has its own ledger entry. */
  readonly replays: number;
  readonly isDuplicate: boolean;
  /** For a delayed or parked ticket: when it is due, in milliseconds. For one in a lane: its position. */
  readonly rank?: number;
  /**
   * For a parked ticket from a lane: its position there, which it keeps. For a ticket in a lane
   * that must wait for a retry, and blocks the lane until then: when it is due, in milliseconds.
   */
  readonly second?: number;
}

const rankDigits = 16;
const idDigits = 36;
const pattern =
  /^(?:([0-9]{16})-(?:([0-9]{16})-)?)?([0-9a-z]{36})-([0-9]{1,9})(?:~([0-9]{1,9}))?(?:@([0-9]{1,9}))?(-duplicate)?\.json$/;

export function newTicketName(id: string): TicketName {
  return { id, claims: 0, forgiven: 0, replays: 0, isDuplicate: false };
}

/** The number of attempts, including the current one. */
export function attemptOf({ claims, forgiven }: TicketName): number {
  return claims - forgiven;
}

export function formatTicketName(name: TicketName): string {
  const { id, claims, forgiven, replays, isDuplicate, rank, second } = name;
  const parts = [
    ...[rank, second].map((number) => (number === undefined ? "" : `${String(number).padStart(rankDigits, "0")}-`)),
    `${id}-${claims}`,
    forgiven === 0 ? "" : `~${forgiven}`,
    replays === 0 ? "" : `@${replays}`,
    isDuplicate ? "-duplicate" : "",
  ];
  return `${parts.join("")}.json`;
}

/** Returns undefined for a foreign file, which is left alone. */
export function findTicketName(name: string): TicketName | undefined {
  const match = pattern.exec(name);
  if (match === null) return undefined;
  const [, rank, second, id = "", claims, forgiven = "0", replays = "0", duplicate] = match;
  const counted = {
    id,
    claims: Number(claims),
    forgiven: Number(forgiven),
    replays: Number(replays),
    isDuplicate: duplicate !== undefined,
  };
  // Each name has one spelling. A name that does not survive the round trip was made by another
  // program.
  const found = {
    ...counted,
    ...(rank === undefined ? {} : { rank: Number(rank) }),
    ...(second === undefined ? {} : { second: Number(second) }),
  };
  return isId(id) && counted.forgiven <= counted.claims && formatTicketName(found) === name ? found : undefined;
}

/**
 * Returns the id in a ticket's name; undefined for a name of another form. Fast, for counting many
 * names: does not check the numbers.
 */
export function findTicketId(name: string): string | undefined {
  if (!name.endsWith(".json")) return undefined;
  let start = 0;
  while (start <= 17 && name.charAt(start + rankDigits) === "-") start += rankDigits + 1;
  return name.charAt(start + idDigits) === "-" ? name.slice(start, start + idDigits) : undefined;
}

/** The largest count that fits in a name. */
const claimsMax = 999_999_999;

/** Returns the name after one more claim. A ticket from a lane keeps its position, in case it returns there. */
export function claimedOf(name: TicketName): TicketName {
  return { ...name, claims: Math.min(name.claims + 1, claimsMax) };
}

/** Returns the name without its position or due time. */
export function unrankedOf({ rank: _rank, second: _second, ...name }: TicketName): TicketName {
  return name;
}

/** Returns the name of the ticket when it is parked until `dueMs`. */
export function parkedOf(name: TicketName, dueMs: number): TicketName {
  return { ...unrankedOf(name), rank: dueMs, ...(name.rank === undefined ? {} : { second: name.rank }) };
}

/** Returns the name as it was before parking. */
export function unparkedOf(name: TicketName): TicketName {
  return { ...unrankedOf(name), ...(name.second === undefined ? {} : { rank: name.second }) };
}

/** Returns the name at its position in its lane, due at `dueMs` if given. */
export function inLaneOf(name: TicketName, position: number, dueMs?: number): TicketName {
  return { ...unrankedOf(name), rank: position, ...(dueMs === undefined ? {} : { second: dueMs }) };
}

// Finds a ticket by its id or key. Its file name is not known, because it counts the claims. Its
// directory usually is: the id tells when the ticket was made, the ledger when it was done.
import { hasErrno } from "../../ports/disk-error.ts";
import { idTimeMs, isId } from "../../format/id.ts";
import { isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { findOwner } from "../box/key-file.ts";
import { dayMs, minuteName } from "../box/layout.ts";
import { findCommitted } from "../ledger/ledger.ts";
import type { TicketState } from "../model/handoff.ts";
import { priorityMax } from "../model/manifest.ts";
import { directoriesOf, lanesOf, ticketsOf, type FoundTicket, type TicketDirectory } from "./tickets.ts";

const minuteMs = 60_000;
/** One round can miss a ticket that returns to the queue meanwhile; three rounds do not. */
const roundsMax = 3;
/**
 * States in the order in which tickets pass through them: a ticket that moves during the search is
 * found in a later one.
 */
export const unfinishedStates: readonly TicketState[] = ["delayed", "incoming", "processing", "error"];
const everywhere: readonly TicketState[] = [...unfinishedStates, "archive"];

/** Known properties of a ticket beside its id. */
interface TicketHint {
  readonly key?: string;
  readonly priority?: number;
  readonly group?: string | undefined;
}

/** Returns the file of ticket `id` in one of `states`, or undefined. Searches the likely directories first. */
export async function findTicket(
  box: Box,
  id: string,
  hint: TicketHint = {},
  states: readonly TicketState[] = everywhere,
): Promise<FoundTicket | undefined> {
  if (!isId(id)) return undefined;
  const likely = (await likelyDirectories(box, id, hint)).filter(({ state }) => states.includes(state));
  const found = await findIn(box, id, likely);
  if (found !== undefined) return found;
  for (let round = 0; round < roundsMax; round++)
    for (const state of states) {
      const there = await findIn(box, id, await directoriesOf(box, state));
      if (there !== undefined) return there;
    }
  return undefined;
}

async function findIn(box: Box, id: string, directories: readonly TicketDirectory[]): Promise<FoundTicket | undefined> {
  for (const each of directories)
    for await (const found of ticketsOf(box, each)) if (found.name.id === id) return found;
  return undefined;
}

/** Returns a handful of directories, though the box may have thousands of minutes and days. */
async function likelyDirectories(box: Box, id: string, hint: TicketHint): Promise<TicketDirectory[]> {
  const { layout } = box;
  const madeMs = idTimeMs(id);
  // If the producer gave no key, the id is the key.
  const entry = await undefinedIfDamaged(findCommitted(box, layout.ledger(hint.key ?? id, 0)));
  if (entry?.committed.id === id) {
    const doneMs = Date.parse(entry.committed.at);
    // The commit precedes the move to the archive, so the ticket may be in the directory of the
    // following day.
    const days = [layout.archive(doneMs), layout.archive(doneMs + dayMs)];
    return days.map((directory) => ({ state: "archive", directory }));
  }
  const incoming: TicketDirectory[] = [];
  if (hint.group !== undefined) incoming.push(...(await directoriesOf(box, "incoming", hint.group)));
  else {
    for (let priority = hint.priority ?? 0; priority <= (hint.priority ?? priorityMax); priority++)
      for (let minute = -1; minute <= 2; minute++) {
        const directory = `${layout.incoming(priority)}/${minuteName(madeMs + minute * minuteMs)}`;
        incoming.push({ state: "incoming", directory });
      }
  }
  // Without the group all lanes are searched. They may hold every waiting ticket of the box, so they come last.
  const lanes = hint.group === undefined ? await lanesOf(box) : [];
  const days = [madeMs, madeMs + dayMs];
  return [
    ...incoming,
    ...(await directoriesOf(box, "processing")),
    ...days.map((atMs): TicketDirectory => ({ state: "error", directory: layout.error(atMs) })),
    ...days.map((atMs): TicketDirectory => ({ state: "archive", directory: layout.archive(atMs) })),
    ...lanes,
  ];
}

/** Returns the ticket that won `key`, or whose id is `key`. Returns undefined if there is none. */
export async function findTicketByKey(box: Box, key: string): Promise<FoundTicket | undefined> {
  const first = await undefinedIfDamaged(findOwner(box, box.layout.key(key)));
  if (first === undefined) return await findTicket(box, key);
  const { id, priority, group } = first.manifest;
  return await findTicket(box, id, { key, priority, group });
}

/** Returns undefined for a damaged record: `verify` reports it, and a search continues without it. */
export async function undefinedIfDamaged<T>(reading: Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isUnreadable(error) || hasErrno(error, "ESTALE", "ENOTDIR")) return undefined;
    throw error;
  }
}

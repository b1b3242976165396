// Finding one ticket by its id or its key. Its name is not known, because it counts the claims; its place mostly
// is: an id tells when it was made, the ledger when it was done.
import { hasErrno } from "../../ports/disk-error.ts";
import { idTimeMs, isId } from "../../format/id.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { dayMs, minuteName } from "../box/layout.ts";
import { findCommitted } from "../ledger/ledger.ts";
import { ticketKind, type Manifest, priorityMax } from "../model/manifest.ts";
import { directoriesOf, lanesOf, ticketsOf, type FoundTicket, type TicketDirectory } from "./tickets.ts";

const minuteMs = 60_000;
/** A ticket that goes back while it is looked for is missed by one round, not by three. */
const roundsMax = 3;
/** In the order in which tickets move: one that moves on meanwhile is met in a later state. */
const everywhere = ["delayed", "incoming", "processing", "error", "archive"] as const;

/** What is known of a ticket beside its id. */
type Hint = Partial<Pick<Manifest, "key" | "priority" | "group">>;

/** The file of the ticket `id`; undefined when there is none. Looks first where it is likely to be. */
export async function findTicket(box: Box, id: string, hint: Hint = {}): Promise<FoundTicket | undefined> {
  if (!isId(id)) return undefined;
  const found = await findIn(box, id, await likelyPlaces(box, id, hint));
  if (found !== undefined) return found;
  for (let round = 0; round < roundsMax; round++)
    for (const state of everywhere) {
      const there = await findIn(box, id, await directoriesOf(box, state));
      if (there !== undefined) return there;
    }
  return undefined;
}

async function findIn(box: Box, id: string, places: readonly TicketDirectory[]): Promise<FoundTicket | undefined> {
  for (const place of places) for await (const found of ticketsOf(box, place)) if (found.name.id === id) return found;
  return undefined;
}

/** A handful of directories, though the box may have thousands of minutes and days. */
async function likelyPlaces(box: Box, id: string, hint: Hint): Promise<TicketDirectory[]> {
  const { layout } = box;
  const madeMs = idTimeMs(id);
  // Without a key of its producer, the id is the key.
  const entry = await orUndefined(findCommitted(box, layout.ledger(hint.key ?? id, 0)));
  if (entry?.committed.id === id) {
    const doneMs = Date.parse(entry.committed.at);
    // The commit comes first: it may have become another day before the ticket moved.
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
    incoming.push(...(await lanesOf(box)));
  }
  const days = [madeMs, madeMs + dayMs];
  return [
    ...incoming,
    ...(await directoriesOf(box, "processing")),
    ...days.map((atMs): TicketDirectory => ({ state: "error", directory: layout.error(atMs) })),
    ...days.map((atMs): TicketDirectory => ({ state: "archive", directory: layout.archive(atMs) })),
  ];
}

/** The ticket that has won `key`, or whose id it is; undefined when there is none. No directory of a state is searched for its name. */
export async function findTicketByKey(box: Box, key: string): Promise<FoundTicket | undefined> {
  const first = await orUndefined(findRecord(box.disk, ticketKind, box.layout.key(key)));
  if (first === undefined) return await findTicket(box, key);
  const { id, priority, group } = first.manifest;
  return await findTicket(box, id, { key, priority, ...(group === undefined ? {} : { group }) });
}

/** What is damaged is told by `verify`; a look goes on without it. */
export async function orUndefined<T>(reading: Promise<T | undefined>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isUnreadable(error) || hasErrno(error, "ESTALE", "ENOTDIR")) return undefined;
    throw error;
  }
}

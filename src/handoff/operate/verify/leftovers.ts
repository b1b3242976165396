// What a box has beside whole tickets: keys and payloads of tickets that are gone, what dead processes had in hand,
// what a crash has left in the trash, and files that Holdfast has not made.
import { isHoldfastError } from "../../../errors.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import { isId } from "../../../format/id.ts";
import { getRecord } from "../../../durable/publish/record-file.ts";
import { findDayMs, findMinuteMs } from "../../box/layout.ts";
import { findCommitted } from "../../ledger/ledger.ts";
import { ticketKind, type Ticket } from "../../model/manifest.ts";
import { findTicketName } from "../../model/ticket-name.ts";
import { reap } from "../../recover/reap.ts";
import { findTicket, orUndefined } from "../find.ts";
import { directoriesOf } from "../tickets.ts";
import { emptyTrash, listTrash } from "../trash.ts";
import { ticketStates } from "../../model/handoff.ts";
import type { Inspection } from "./inspection.ts";

/** The ids of all payloads: to be listed before the tickets, which are made first and go last. */
export async function listPayloads({ box }: Inspection): Promise<string[]> {
  const ids: string[] = [];
  for (const shard of await box.names(box.layout.payloads))
    for (const id of await box.names(`${box.layout.payloads}/${shard}`)) if (isId(id)) ids.push(id);
  return ids;
}

/** The ids of tickets that are not published yet, or are on their way out. */
export async function listUnfinished({ box }: Inspection): Promise<string[]> {
  const ids: string[] = [];
  for (const holder of await box.names(box.layout.stagings))
    for (const text of await box.names(box.layout.staging(holder))) ids.push(text.slice(0, 36));
  for (const text of await box.names(box.layout.trash)) ids.push(text.slice(0, 36));
  return ids.filter((id) => isId(id));
}

export async function checkPayloads(
  inspection: Inspection,
  payloads: readonly string[],
  known: ReadonlySet<string>,
): Promise<void> {
  const { box } = inspection;
  for (const id of payloads) {
    if (known.has(id) || (await findTicket(box, id)) !== undefined) continue;
    const path = box.layout.payload(id);
    if (!(await inspection.isStill(path)) || (await listUnfinished(inspection)).includes(id)) continue;
    inspection.leftover(path, "It is the payload of a ticket that is not there.", inspection.aside(path));
  }
}

/** A key whose ticket is gone, and that is not in the ledger, would make the next ticket with it a duplicate of nothing. */
export async function checkKeys(
  inspection: Inspection,
  shards: readonly string[],
  known: ReadonlySet<string>,
): Promise<void> {
  const { box } = inspection;
  for (const shard of shards) {
    inspection.step();
    for (const name of await box.names(`${box.layout.keys}/${shard}`)) {
      inspection.signal.throwIfAborted();
      await checkKey(inspection, `${box.layout.keys}/${shard}/${name}`, known);
    }
  }
}

async function checkKey(inspection: Inspection, path: string, known: ReadonlySet<string>): Promise<void> {
  const { box } = inspection;
  let ticket: Ticket;
  try {
    ticket = await getRecord(box.disk, ticketKind, path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return;
    if (isHoldfastError(error, "NEWER_FORMAT"))
      return inspection.damage(path, error.message, undefined, "Upgrade Holdfast here.");
    if (!isHoldfastError(error, "CORRUPT", "IO_ERROR")) throw error;
    return inspection.damage(path, error.message, inspection.aside(path));
  }
  const { id, key } = ticket.manifest;
  if (box.layout.key(key) !== path) return inspection.stray(path);
  if (known.has(id)) return;
  // A damaged entry of the ledger is reported there, and keeps its key.
  const entry = await orUndefined(findCommitted(box, box.layout.ledger(key, 0)));
  if (entry !== undefined || (await inspection.isStill(box.layout.ledger(key, 0)))) return;
  if ((await findTicket(box, id, ticket.manifest)) !== undefined || !(await inspection.isStill(path))) return;
  if ((await listUnfinished(inspection)).includes(id)) return;
  const what = `The key ${JSON.stringify(key)} points to ticket ${id}, which is not there and was not done: a ticket that is published with this key would be taken for a duplicate.`;
  inspection.leftover(path, what, inspection.aside(path));
}

export async function checkHands(inspection: Inspection): Promise<void> {
  const { box } = inspection;
  const { processings, stagings, trash } = box.layout;
  for (const parent of [processings, stagings])
    for (const holder of await box.names(parent)) {
      const path = `${parent}/${holder}`;
      if (!isId(holder)) inspection.stray(path);
      else if ((await box.ground.stateOf(holder)) === "dead" && (await inspection.isStill(path)))
        inspection.leftover(path, "The process that had this in hand is dead.", async () => void (await reap(box)));
    }
  const trashed = await listTrash(box);
  if (trashed.length > 0)
    inspection.leftover(trash, `It has ${trashed.length} entries that are on their way out.`, () => emptyTrash(box));
}

/** Names in the directories of states that are no tickets, days or minutes. Consumers leave them alone. */
export async function checkStrays(inspection: Inspection): Promise<void> {
  const { box } = inspection;
  const { layout } = box;
  const among = async (parent: string, isOurs: (name: string) => boolean): Promise<void> => {
    for (const name of await box.names(parent)) if (!isOurs(name)) inspection.stray(`${parent}/${name}`);
  };
  for (const state of ticketStates)
    for (const { directory, holder } of await directoriesOf(box, state))
      if (holder === undefined) await among(directory, (name) => findTicketName(name) !== undefined);
  for (const priority of await box.names(layout.incomings))
    if (/^[0-9]$/.test(priority)) await among(layout.incoming(Number(priority)), isMinute);
    else inspection.stray(`${layout.incomings}/${priority}`);
  await among(layout.delayed, isMinute);
  for (const parent of [layout.archives, layout.errors]) await among(parent, (name) => findDayMs(name) !== undefined);
  const known = new Set(layout.rooms);
  for (const name of await box.names(layout.directory))
    if (!known.has(name))
      inspection.note(`${layout.directory}/${name}`, "It is no file of this box.", "It is left alone.");
}

function isMinute(name: string): boolean {
  return findMinuteMs(name) !== undefined;
}

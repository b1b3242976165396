// Checks for leftovers in a box: keys and payloads of missing tickets, claims and staging of dead
// processes, the trash, and files that Holdfast did not make.
import { hasErrno } from "../../../ports/disk-error.ts";
import { isId } from "../../../format/id.ts";
import { isLink } from "../../../durable/publish/directory.ts";
import { getRecord } from "../../../durable/publish/record-file.ts";
import { findDayMs, findMinuteMs, laneCount } from "../../box/layout.ts";
import { keyFileKind, ownerOf } from "../../box/key-file.ts";
import { isExpiring } from "../../ledger/expiry.ts";
import { findCommitted } from "../../ledger/ledger.ts";
import { priorityMax, type Ticket } from "../../model/manifest.ts";
import { findTicketName } from "../../model/ticket-name.ts";
import { ClaimEntry } from "../../foreign/claim-entry.ts";
import { listNotedProblems, problemsName } from "../../foreign/problems.ts";
import { returnDeadTickets } from "../../recover/return-tickets.ts";
import { findTicket, undefinedIfDamaged } from "../find.ts";
import { directoriesOf } from "../tickets.ts";
import { emptyTrash, listTrash } from "../trash.ts";
import { ticketStates } from "../../model/handoff.ts";
import { repairRemedy, type Inspection } from "./inspection.ts";

/**
 * Lists the ids of all payloads. Call it before listing tickets: a ticket is created before its
 * payload and removed after it.
 */
export async function listPayloads({ box }: Inspection): Promise<string[]> {
  const ids: string[] = [];
  for (const shard of await box.names(box.layout.payloads))
    for (const id of await box.names(`${box.layout.payloads}/${shard}`)) if (isId(id)) ids.push(id);
  return ids;
}

/** Lists the ids of tickets that are not yet published, or are being removed. */
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
    inspection.leftover(path, "It is the payload of a ticket that does not exist.", inspection.aside(path));
  }
}

/**
 * Reports keys whose ticket is gone and that have no ledger entry: a publish with such a key is
 * answered as a duplicate, though nothing was or will be delivered.
 */
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
  let ticket: Ticket | undefined;
  try {
    const tickets = await getRecord(box.disk, keyFileKind, path);
    ticket = ownerOf(box, tickets, path.slice(path.lastIndexOf("/") + 1));
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE")) inspection.unreadable(path, error, inspection.aside(path));
    else if (await isLink(box.disk, path)) inspection.stray(path);
    return;
  }
  if (ticket === undefined || box.layout.key(ticket.manifest.key) !== path) return inspection.stray(path);
  const { id, key } = ticket.manifest;
  if (known.has(id)) return;
  // A damaged ledger entry keeps its key. ledger-check.ts reports it.
  const entry = await undefinedIfDamaged(findCommitted(box, box.layout.ledger(key, 0)));
  if (entry !== undefined || (await inspection.isStill(box.layout.ledger(key, 0)))) return;
  if ((await findTicket(box, id, ticket.manifest)) !== undefined) return;
  if ((await listUnfinished(inspection)).includes(id)) return;
  if ((await isExpiring(box, path.slice(path.lastIndexOf("/") + 1))) || !(await inspection.isStill(path))) return;
  const what = `The key ${JSON.stringify(key)} names ticket ${id}, which does not exist and is not in the ledger. Every publish with this key is answered as a duplicate, and nothing is delivered.`;
  inspection.damage(path, what, inspection.aside(path));
}

export async function checkHolders(inspection: Inspection): Promise<void> {
  const { box } = inspection;
  const { processings, stagings, trash } = box.layout;
  for (const parent of [processings, stagings])
    for (const holder of await box.names(parent)) {
      const path = `${parent}/${holder}`;
      if (!isId(holder) || (await isFile(inspection, path))) inspection.stray(path);
      else if ((await box.ground.stateOf(holder)) === "dead" && (await inspection.isStill(path)))
        inspection.leftover(
          path,
          "The process that used this directory is dead.",
          async () => void (await returnDeadTickets(box)),
        );
    }
  // Recovery leaves an unreadable staged ticket to its publisher. A directory is never a staged
  // ticket.
  for (const holder of await box.names(stagings))
    for (const name of await box.names(`${stagings}/${holder}`))
      if (name.endsWith(".json") && (await isNotFile(inspection, `${stagings}/${holder}/${name}`)))
        inspection.stray(`${stagings}/${holder}/${name}`);
  for (const { path, what, remedy } of await box.ground.damagedHolders()) inspection.note(path, what, remedy);
  const trashed = await listTrash(box);
  if (trashed.length > 0)
    inspection.leftover(trash, `It has ${trashed.length} entries that wait to be deleted.`, () => emptyTrash(box));
}

/** Reports entries that adopters could not take, and entries they took whose origin is unknown. */
export async function checkAdopting(inspection: Inspection): Promise<void> {
  const { box } = inspection;
  for (const { path, noted } of await listNotedProblems(box))
    if (noted === undefined) inspection.leftover(path, "It is not a note of an adopter.", inspection.aside(path));
    else
      inspection.note(
        `${noted.folder}/${noted.name}`,
        `${noted.what} Reported by an adopter on ${noted.host}.`,
        noted.remedy,
      );
  const claims = `${box.layout.directory}/adopting`;
  for (const name of await box.names(claims))
    if (!(isId(name) || name === problemsName) || (await isFile(inspection, `${claims}/${name}`)))
      inspection.stray(`${claims}/${name}`);
  for (const holder of (await box.names(claims)).filter((name) => isId(name)))
    for (const id of await box.names(`${claims}/${holder}`)) {
      if (!isId(id) || (await isFile(inspection, `${claims}/${holder}/${id}`))) {
        inspection.stray(`${claims}/${holder}/${id}`);
        continue;
      }
      const entry = new ClaimEntry(box.disk, `${claims}/${holder}/${id}`, box.isSynced);
      const { isEmpty, isPublished } = await entry.state();
      if (isEmpty || isPublished || (await entry.findOrigin()) !== undefined || box.inProgress.has(entry.path))
        continue;
      if (!(await inspection.isStill(entry.path)) || (await entry.state()).isEmpty) continue;
      const what = "It has files of another program, and no record of the folder they came from.";
      inspection.damage(
        entry.path,
        what,
        inspection.aside(entry.path),
        `The files can be adopted again. ${repairRemedy}`,
      );
    }
}

/** Reports names in the directories of states that are not tickets, days or minutes. Consumers ignore them. */
export async function checkStrays(inspection: Inspection): Promise<void> {
  const { box } = inspection;
  const { layout } = box;
  const among = async (parent: string, isOurs: (name: string) => boolean): Promise<void> => {
    for (const name of await box.names(parent)) if (!isOurs(name)) inspection.stray(`${parent}/${name}`);
  };
  for (const state of ticketStates)
    for (const { directory, holder } of await directoriesOf(box, state))
      if (holder === undefined) await among(directory, (name) => findTicketName(name) !== undefined);
  const amongDirectories = async (parent: string, isOurs: (name: string) => boolean): Promise<void> => {
    for (const name of await box.names(parent))
      if (!isOurs(name) || (await isFile(inspection, `${parent}/${name}`))) inspection.stray(`${parent}/${name}`);
  };
  await amongDirectories(layout.incomings, (name) => /^[0-9]$/.test(name));
  for (let priority = 0; priority <= priorityMax; priority++)
    await amongDirectories(layout.incoming(priority), isMinute);
  await amongDirectories(layout.delayed, isMinute);
  await amongDirectories(layout.lanes, (name) => /^[0-9]{2}$/.test(name) && Number(name) < laneCount);
  for (const parent of [layout.archives, layout.errors])
    await amongDirectories(parent, (name) => findDayMs(name) !== undefined);
  for (const shard of await box.names(layout.payloads))
    await among(`${layout.payloads}/${shard}`, (name) => isId(name) && name.endsWith(shard));
  for (const parent of [layout.keys, layout.ledgers, layout.notes, layout.payloads])
    await amongDirectories(parent, (name) => /^[0-9a-z]{2,3}$/.test(name));
  const known = new Set(layout.rooms);
  for (const name of await box.names(layout.directory))
    if (!known.has(name))
      inspection.note(`${layout.directory}/${name}`, "It is not a file of this box.", "It is left alone.");
}

/** True if `path` exists and is not a directory. */
async function isFile({ box }: Inspection, path: string): Promise<boolean> {
  return (await isLink(box.disk, path)) || ((await box.disk.findStat(path))?.kind ?? "directory") !== "directory";
}

/** True if `path` exists and is not a file. */
async function isNotFile({ box }: Inspection, path: string): Promise<boolean> {
  return (await isLink(box.disk, path)) || ((await box.disk.findStat(path))?.kind ?? "file") !== "file";
}

function isMinute(name: string): boolean {
  return findMinuteMs(name) !== undefined;
}

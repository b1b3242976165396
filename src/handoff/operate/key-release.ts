// Releases keys. A key lives while its ticket waits or its ledger entry exists. A process that
// removes one of the two first removes it, then checks for the other. The process that removes the
// last of the two therefore removes the key, whatever the order and the clocks.
import { randomName } from "../../format/id.ts";
import { recordBytesMax } from "../../format/record.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { linkOnce, moveOnce } from "../../durable/publish/publish.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { findOwner, keyFileKind, ownerOf } from "../box/key-file.ts";
import { nameExists } from "../box/names.ts";
import { findCommitted } from "../ledger/ledger.ts";
import type { Ticket } from "../model/manifest.ts";
import { formatTicketName, newTicketName } from "../model/ticket-name.ts";
import { findTicket, undefinedIfDamaged, unfinishedStates } from "./find.ts";

const prefix = "key-";
/** `key-<hash>-<random>`; older builds wrote `key-<random>`. */
const hashPattern = /^key-([0-9a-f]{64})-/;

/** True if a trash entry is a key that a process is checking for release. */
export function isTrashedKey(name: string): boolean {
  return name.startsWith(prefix);
}

/**
 * Releases `key`, unless its ticket waits or the ledger has it. Call it after removing a ticket
 * with this key, or its ledger entry. Ticket `goneId` no longer needs the key: it was removed, or
 * the entry was its own.
 */
export async function releaseKey(box: Box, key: string, goneId: string): Promise<void> {
  // `finishKey` checks this again once the key is in the trash. The early check saves two renames:
  // most keys still have a ledger entry.
  if (await isCommitted(box, key)) return;
  const path = box.layout.key(key);
  const ticket = await undefinedIfDamaged(findOwner(box, path));
  if (ticket === undefined || (await isWaiting(box, ticket, goneId))) return;
  // Renamed, not unlinked: another ticket may have won the key since it was read.
  const name = `${prefix}${path.slice(path.lastIndexOf("/") + 1)}-${randomName(box.ground.ports.random.bytes(16))}`;
  const trashed = `${await box.ensure(box.layout.trash)}/${name}`;
  if (await moveOnce(box.disk, path, trashed)) await finishKey(box, trashed, ticket.manifest.id);
}

/** Removes a key from the trash, or restores it if a ticket other than `goneId` needs it. */
export async function finishKey(box: Box, trashed: string, goneId?: string): Promise<void> {
  const ticket = await findTrashed(box, trashed);
  if (ticket !== undefined) {
    const { key } = ticket.manifest;
    if ((await isCommitted(box, key)) || (await isWaiting(box, ticket, goneId))) {
      const bytes = await box.disk.readFile(trashed, recordBytesMax);
      await linkOnce(box.disk, trashed, box.layout.key(key), bytes, { mayRepeat: true });
    }
  }
  await removeTree(box.disk, trashed);
}

async function findTrashed(box: Box, trashed: string): Promise<Ticket | undefined> {
  const tickets = await undefinedIfDamaged(findRecord(box.disk, keyFileKind, trashed));
  const hash = hashPattern.exec(trashed.slice(trashed.lastIndexOf("/") + 1))?.[1];
  return tickets && (hash === undefined ? tickets[0] : ownerOf(box, tickets, hash));
}

/**
 * True if the ticket owns its key. Returns true also if another process is about to release or
 * restore the key: the ticket was published with it.
 */
export async function hasKey(box: Box, { isKeyed, manifest }: Ticket): Promise<boolean> {
  if (!isKeyed) return false;
  const isOwn = (first: Ticket | undefined): boolean => first?.manifest.id === manifest.id;
  const path = box.layout.key(manifest.key);
  if (isOwn(await findOwner(box, path, { isSure: true }))) return true;
  for (const name of (await box.names(box.layout.trash)).filter(isTrashedKey)) {
    const hash = hashPattern.exec(name)?.[1];
    if (hash !== undefined && !path.endsWith(hash)) continue;
    if (isOwn(await findTrashed(box, `${box.layout.trash}/${name}`))) return true;
  }
  // Another process may have restored the key meanwhile and emptied the trash.
  return isOwn(await findOwner(box, path, { isSure: true }));
}

async function isCommitted(box: Box, key: string): Promise<boolean> {
  try {
    return (await findCommitted(box, box.layout.ledger(key, 0), { isSure: true })) !== undefined;
  } catch (error) {
    // An unreadable entry keeps the key; `verify` reports the entry.
    if (isUnreadable(error)) return true;
    throw error;
  }
}

/**
 * True if the ticket of a key still needs it. Returns false for a ticket in the archive: it is
 * done, and its ledger entry has expired.
 */
async function isWaiting(box: Box, ticket: Ticket, goneId: string | undefined): Promise<boolean> {
  const { id } = ticket.manifest;
  if (id === goneId) return false;
  // Staging is checked first: a ticket is staged before it is anywhere else.
  return (await isStaged(box, ticket)) || (await findTicket(box, id, ticket.manifest, unfinishedStates)) !== undefined;
}

async function isStaged(box: Box, { stagedBy, manifest }: Ticket): Promise<boolean> {
  const holders = stagedBy === undefined ? await box.names(box.layout.stagings) : [stagedBy];
  const name = formatTicketName(newTicketName(manifest.id));
  for (const holder of holders) if (await nameExists(box.disk, `${box.layout.staging(holder)}/${name}`)) return true;
  return false;
}

// Tickets that were staged and not published: what becomes of each. One that has won its key is published; every
// other one goes, and with it its payload.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { randomName } from "../../format/id.ts";
import { removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecordSurely, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { ticketKind, type Ticket } from "../model/manifest.ts";
import { findTicketName, formatTicketName, newTicketName, type TicketName } from "../model/ticket-name.ts";
import { enter } from "./enter.ts";

/** Staged tickets of this process that could not be settled when their publish failed. By box: each has its own disk. */
const leftovers = new WeakMap<Box, Set<string>>();

/**
 * Takes back a ticket of this process that was not published and has no key. The payload goes first: as long as
 * the ticket is there, a sweeper knows of it. Needs no room on the disk. What cannot be removed now is kept in mind.
 */
export async function withdraw(box: Box, staged: string, id: string): Promise<void> {
  try {
    await removeTree(box.disk, box.layout.payload(id));
    await unlinkIfThere(box.disk, staged);
  } catch {
    // The error that led here tells more. The next publish, `close` or a sweeper removes it.
    remember(box, staged);
  }
}

/** The same for a ticket that may have won its key, or may be published. What cannot be settled now is kept in mind. */
export async function settleStaged(box: Box, staged: string): Promise<void> {
  try {
    await settle(box, staged);
  } catch {
    remember(box, staged);
  }
}

/** Tries again what could not be settled before. Fails never: the publish that comes next tells what is wrong. */
export async function settleLeftovers(box: Box): Promise<void> {
  const paths = leftovers.get(box);
  if (paths === undefined) return;
  for (const path of [...paths]) {
    paths.delete(path);
    await settleStaged(box, path);
  }
}

function remember(box: Box, staged: string): void {
  const paths = leftovers.get(box) ?? new Set();
  leftovers.set(box, paths.add(staged));
}

async function settle(box: Box, staged: string): Promise<void> {
  const name = findTicketName(staged.slice(staged.lastIndexOf("/") + 1));
  if (name !== undefined) await settleTicket(box, staged, name);
}

/**
 * Gives a ticket that has won its key its place in its lane, if its publisher has not come to that: a publish that
 * begins when this one was told of it is to have a later place. The publisher may be dead or on its way: one of the
 * two moves the ticket.
 */
export async function enterFirst(box: Box, { manifest, stagedBy }: Ticket): Promise<void> {
  const { id, group, notBefore } = manifest;
  if (stagedBy === undefined || group === undefined || notBefore !== undefined) return;
  const name = newTicketName(id);
  const staged = `${box.layout.staging(stagedBy)}/${formatTicketName(name)}`;
  // Never discarded, whatever can be read of it: its key says that it counts.
  if (await isThere(box, staged)) await enter(box, staged, name, manifest);
}

async function isThere({ disk }: Box, path: string): Promise<boolean> {
  try {
    await disk.look(path);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

/** Of this process, or of one that is dead: publishes the ticket if it has its key, else discards it. */
export async function settleTicket(box: Box, staged: string, name: TicketName): Promise<void> {
  const ticket = await findStaged(box, staged);
  if (ticket !== undefined && (await hasKey(box, ticket))) await enter(box, staged, name, ticket.manifest);
  else await discardStaged(box, staged, name.id);
}

/**
 * Only the process that moves the entry away removes the payload: its publisher may be about to publish it, and
 * another sweeper to discard it.
 */
async function discardStaged(box: Box, staged: string, id: string): Promise<void> {
  const { random } = box.ground.ports;
  const trashed = `${await box.ensure(box.layout.trash)}/${id}-${randomName(random.bytes(16))}`;
  if (!(await moveOnce(box.disk, staged, trashed))) return;
  await removeTree(box.disk, box.layout.payload(id));
  await removeTree(box.disk, trashed);
}

/**
 * Undefined also for a ticket that is torn: its publisher did not come to the key. One that cannot be read for another
 * reason may have its key: it is settled when it can be.
 */
async function findStaged(box: Box, path: string): Promise<Ticket | undefined> {
  try {
    return await findRecordSurely(box.disk, ticketKind, path);
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT")) return undefined;
    throw error;
  }
}

/** Undefined also for a ticket that is damaged, or that this process cannot read. */
export async function findWhole(box: Box, path: string): Promise<Ticket | undefined> {
  try {
    return await findRecordSurely(box.disk, ticketKind, path);
  } catch (error) {
    if (isUnreadable(error) || hasErrno(error, "ESTALE")) return undefined;
    throw error;
  }
}

async function hasKey(box: Box, { isKeyed, manifest }: Ticket): Promise<boolean> {
  if (!isKeyed) return false;
  const first = await findRecordSurely(box.disk, ticketKind, box.layout.key(manifest.key));
  return first?.manifest.id === manifest.id;
}

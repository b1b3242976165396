// Settles tickets that were staged and not published: publishes those that have won their key, and
// removes all others with their payloads.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { randomName } from "../../format/id.ts";
import { removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecordSurely, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { nameExists } from "../box/names.ts";
import { hasKey } from "../operate/key-release.ts";
import { ticketKind, type Ticket } from "../model/manifest.ts";
import { findTicketName, formatTicketName, newTicketName, type TicketName } from "../model/ticket-name.ts";
import { enter } from "./enter.ts";

/**
 * Staged tickets of this process that could not be settled when their publish failed. By box,
 * because each has its own disk.
 */
const leftovers = new WeakMap<Box, Set<string>>();

/**
 * Withdraws a ticket of this process that was not published and has no key. The payload is removed
 * first: while the ticket exists, a sweeper knows of it. Needs no disk space. A ticket that cannot
 * be removed now is remembered.
 */
export async function withdraw(box: Box, staged: string, id: string): Promise<void> {
  try {
    await removeTree(box.disk, box.layout.payload(id));
    await unlinkIfThere(box.disk, staged);
  } catch {
    // The original error is more specific. The next publish, `close` or a sweeper removes the
    // ticket.
    remember(box, staged);
  }
}

/**
 * Like `withdraw`, for a ticket that may have won its key, or may be published. A ticket that
 * cannot be settled now is remembered.
 */
export async function settleStaged(box: Box, staged: string): Promise<void> {
  try {
    await settle(box, staged);
  } catch {
    remember(box, staged);
  }
}

/** Retries tickets that could not be settled before. Never fails: the next publish reports what is wrong. */
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
 * Enters a ticket that has won its key into its lane, if its publisher has not done so yet: a
 * publish that begins after this call returned must get a later position. The publisher may be dead
 * or still working: one of the two moves the ticket.
 */
export async function enterFirst(box: Box, { manifest, stagedBy }: Ticket): Promise<void> {
  const { id, group, notBefore } = manifest;
  if (stagedBy === undefined || group === undefined || notBefore !== undefined) return;
  const name = newTicketName(id);
  const staged = `${box.layout.staging(stagedBy)}/${formatTicketName(name)}`;
  // The ticket is never discarded, even if it cannot be read: its key proves that it was published.
  if (await nameExists(box.disk, staged)) await enter(box, staged, name, manifest);
}

/**
 * Settles a ticket of this process or of a dead one: publishes it if it won its key, otherwise
 * discards it.
 */
export async function settleTicket(box: Box, staged: string, name: TicketName): Promise<void> {
  const ticket = await findStaged(box, staged);
  if (ticket !== undefined && (await hasKey(box, ticket))) await enter(box, staged, name, ticket.manifest);
  else await discardStaged(box, staged, name.id);
}

/**
 * Only the process that moved the entry to the trash removes the payload: the publisher may be
 * publishing the ticket, and another sweeper may be discarding it.
 */
async function discardStaged(box: Box, staged: string, id: string): Promise<void> {
  const { random } = box.ground.ports;
  const trashed = `${await box.ensure(box.layout.trash)}/${id}-${randomName(random.bytes(16))}`;
  if (!(await moveOnce(box.disk, staged, trashed))) return;
  await removeTree(box.disk, box.layout.payload(id));
  await removeTree(box.disk, trashed);
}

/**
 * Returns undefined also for a ticket whose write was interrupted: it cannot have won a key yet.
 * Throws if the ticket cannot be read for another reason: it may have its key, and is settled once
 * it can be read.
 */
async function findStaged(box: Box, path: string): Promise<Ticket | undefined> {
  try {
    return await findRecordSurely(box.disk, ticketKind, path);
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT")) return undefined;
    throw error;
  }
}

/** Returns undefined also for a ticket that is damaged, or that this process cannot read. */
export async function findReadableTicket(box: Box, path: string): Promise<Ticket | undefined> {
  try {
    return await findRecordSurely(box.disk, ticketKind, path);
  } catch (error) {
    if (isUnreadable(error) || hasErrno(error, "ESTALE")) return undefined;
    throw error;
  }
}

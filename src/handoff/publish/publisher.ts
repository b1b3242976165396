// Publishing: files become a ticket that a consumer can claim.
//
// 1. An empty ticket is created in `staging/<holder>`: from here on a sweeper knows the id.
// 2. The payload is written to its final directory, hashed on the way, and synced (payload.ts).
// 3. The ticket is filled and synced. A ticket that contains its small payload leaves nothing
//    elsewhere for a sweeper to find: it skips steps 1 and 2, and is created filled.
// 4. With a key: the ticket's name in the staging is synced, then its key's name in `keys/` is linked
//    to a record of this ticket, once. That decides who publishes. Keys that are won at the same
//    moment share a file (box/key-file.ts).
// 5. The ticket moves to `incoming/`, `delayed/` or its lane by one rename, and the directory is
//    synced (enter.ts). Then it is acknowledged.
//
// If the process dies before 4 (without a key: before 5), nothing is published: a sweeper removes the
// staged ticket and its payload. If it dies between 4 and 5, the ticket is published: the sweeper
// does step 5.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { outcomeUnknown } from "../../durable/publish/publish.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import type { Box } from "../box/box.ts";
import { findOwner, keysOf } from "../box/key-file.ts";
import { nameExists } from "../box/names.ts";
import { encodeTicket, type Ticket } from "../model/manifest.ts";
import { describeFile, type Publication, type Published } from "../model/publication.ts";
import { formatTicketName, newTicketName } from "../model/ticket-name.ts";
import { findTicket } from "../operate/find.ts";
import { releaseKey } from "../operate/key-release.ts";
import { enter, syncLane } from "./enter.ts";
import { writePayload, type Payload } from "./payload.ts";
import { enterFirst, settleLeftovers, settleStaged, withdraw } from "./staged.ts";

/** How often a key is tried again because it was released before its owner could be read. */
const triesMax = 10;

export async function publish(box: Box, publication: Publication): Promise<Published> {
  await settleLeftovers(box);
  const id = box.newId();
  const session = await box.ground.session();
  const staged = `${await box.staging(session)}/${formatTicketName(newTicketName(id))}`;
  const { ticket, first } = await orWithdraw({ box, session, staged, id }, async () => {
    // 1 and 2.
    const createEmpty = (): Promise<void> => createTicket(box, session, staged, new Uint8Array(), false);
    const payload = await writePayload(box, id, publication, createEmpty);
    await publication.admit?.(sizeOf(payload), id);
    // 3.
    const made = await describeTicket(box, id, publication, payload);
    const bytes = encodeTicket(made);
    if (made.inline === undefined) await fill(box, staged, bytes);
    else await createTicket(box, session, staged, bytes, box.isSynced);
    publication.signal?.throwIfAborted();
    // 4.
    const owner = made.isKeyed ? await claimKey(box, session, staged, made) : undefined;
    if (owner !== undefined) {
      await withdraw(box, staged, id);
      await enterFirst(box, owner);
    }
    return { ticket: made, first: owner };
  });
  const { key } = ticket.manifest;
  if (first !== undefined) return { id: first.manifest.id, key, duplicate: true };
  // 5.
  if (!(await enterStaged(box, staged, ticket))) await mustBeEntered(box, staged, ticket);
  return { id, key, duplicate: false };
}

interface Staged {
  readonly box: Box;
  readonly session: HolderSession;
  readonly staged: string;
  readonly id: string;
}

/** Runs steps 1 to 4. If one fails, nothing is published and the ticket is removed. */
async function orWithdraw<T>({ box, session, staged, id }: Staged, stage: () => Promise<T>): Promise<T> {
  try {
    return await stage();
  } catch (error) {
    // It is unknown whether this ticket won the key. The key file shows it, now or later.
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) await settleStaged(box, staged);
    else {
      const mayBeGone = hasErrno(error, "ENOENT") || isHoldfastError(error, "LOCK_LOST");
      const isGone = mayBeGone && (await isSwept(box, session, staged));
      await withdraw(box, staged, id);
      if (isGone) throw takenForDead(staged, error);
    }
    throw error;
  }
}

async function createTicket(
  box: Box,
  session: HolderSession,
  staged: string,
  bytes: Uint8Array,
  sync: boolean,
): Promise<void> {
  try {
    await createUniqueFile(box.disk, staged, bytes, { sync });
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
    session.reportSwept(session.temp);
    throw takenForDead(staged, error);
  }
}

async function describeTicket(box: Box, id: string, publication: Publication, payload: Payload): Promise<Ticket> {
  const { facts, key, delayMs, expiresMs } = publication;
  const { files, inline } = payload;
  const { name, pid } = box.ground.ports.host;
  // Read after the payload was written, which may take hours: the age of a ticket counts from its
  // publication.
  const nowMs = await box.nowMs();
  return {
    isKeyed: key !== undefined,
    manifest: {
      id,
      key: typeof key === "function" ? key(files) : (key ?? id),
      ...facts,
      files: files.map((file) => describeFile(file, publication)),
      createdAt: new Date(nowMs),
      producer: { host: name, pid },
      ...(delayMs === undefined ? {} : { notBefore: new Date(nowMs + delayMs) }),
      ...(expiresMs === undefined ? {} : { expiresAt: new Date(nowMs + expiresMs) }),
    },
    ...(inline === undefined
      ? {}
      : { inline: Object.fromEntries(files.map(({ name }, index) => [name, base64Of(inline[index])])) }),
  };
}

function sizeOf({ files }: Payload): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

function base64Of(bytes: Uint8Array = new Uint8Array()): string {
  return Buffer.from(bytes).toString("base64");
}

async function fill(box: Box, staged: string, bytes: Uint8Array): Promise<void> {
  const file = await box.disk.open(staged, "write");
  try {
    await file.write(0, bytes);
    if (box.isSynced) await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Returns undefined if this ticket now has the key, otherwise the ticket that had it before.
 *
 * The key is a file of its own, or one that keys of the same moment share. It is linked from the
 * temp directory of this session, which is gone before a sweeper checks the key. A second link to
 * the staged ticket could still be made after that check: on NFS a link refers to the file that the
 * client once found, wherever a sweeper has moved it.
 */
async function claimKey(
  box: Box,
  session: HolderSession,
  staged: string,
  { isKeyed, manifest }: Ticket,
): Promise<Ticket | undefined> {
  const path = box.layout.key(manifest.key);
  const record = { isKeyed, stagedBy: session.holder.id, manifest };
  try {
    for (let tries = 1; tries <= triesMax; tries++) {
      // Synced before the key is linked: a power cut must not leave a key without the staged ticket
      // that a sweeper would publish.
      const named = box.sync(parentOf(staged));
      if (await keysOf(box).put(session, path, record, named)) return undefined;
      const first = await findOwner(box, path, { isSure: true });
      // The key was released meanwhile: its ticket and its ledger entry are gone.
      if (first === undefined) continue;
      // Synced before it is returned: its publisher may not have synced it yet.
      await box.sync(parentOf(path));
      return first;
    }
    throw outcomeUnknown(path, undefined);
  } catch (error) {
    throw hasErrno(error, "ENOENT") ? takenForDead(staged, error) : error;
  }
}

/**
 * A ticket that has won its key counts as published even if this call fails: another publisher may
 * already have been answered with it. It enters the queue with the next publish of this process, or
 * when this process closes or dies.
 */
async function enterStaged(box: Box, staged: string, ticket: Ticket): Promise<boolean> {
  const { id } = ticket.manifest;
  try {
    return await enter(box, staged, newTicketName(id), ticket.manifest);
  } catch (error) {
    await settleStaged(box, staged);
    throw ticket.isKeyed && !isHoldfastError(error, "OUTCOME_UNKNOWN") ? outcomeUnknown(staged, error) : error;
  }
}

/**
 * The ticket won its key and left the staging without this process: another process entered it, but
 * may not have synced it yet. Or a person removed it; then its key is released, so that the ticket
 * can be published again.
 */
async function mustBeEntered(box: Box, staged: string, { isKeyed, manifest }: Ticket): Promise<void> {
  if (!isKeyed) throw takenForDead(staged, undefined);
  const { id, key } = manifest;
  try {
    const found = await findTicket(box, id, manifest);
    if (found === undefined) await releaseKey(box, key, id);
    else if (await syncLane(box, manifest)) return;
  } catch (error) {
    throw outcomeUnknown(staged, error);
  }
  throw outcomeUnknown(staged, undefined);
}

/** True if a sweeper has removed a staged ticket of this session. */
async function isSwept(box: Box, session: HolderSession, staged: string): Promise<boolean> {
  try {
    if (await nameExists(box.disk, staged)) return false;
    if (!(await nameExists(box.disk, parentOf(staged)))) session.reportSwept(session.temp);
    return true;
  } catch {
    // The original error is more specific.
    return false;
  }
}

function takenForDead(path: string, cause: unknown): Error {
  const message = `${path} is gone: other processes judged this one dead while it published, or another program removed it. Nothing was published. Publish it again.`;
  return holdfastError("LOCK_LOST", message, { path }, cause);
}

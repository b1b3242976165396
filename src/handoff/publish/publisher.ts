// Publishing: files become a ticket that a consumer can claim.
//
// 1. An empty ticket is created in `staging/<holder>`: from here on a sweeper knows the id.
// 2. The payload is written to where it stays, hashed on the way, and synced.
// 3. The ticket is filled and synced.
// 4. With a key: its name in `keys/` is won, once, by a record of this ticket. That decides who publishes.
// 5. The ticket moves to `incoming/` by one rename, and its directory is synced. Then it is acknowledged.
//
// A process that dies before 4 (without a key: before 5) has published nothing: its entry in `staging` goes,
// and with it its payload. One that dies between 4 and 5 has published: the sweeper does step 5 for it.
import type { Body } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { encodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { outcomeUnknown, putStaged } from "../../durable/publish/publish.ts";
import { discard, stage } from "../../durable/publish/staging.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { getRecord } from "../../durable/publish/record-file.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import type { Box } from "../box/box.ts";
import { ticketBody, ticketKind, type Manifest, type ManifestFile, type Ticket } from "../model/manifest.ts";
import { formatTicketName, newTicketName } from "../model/ticket-name.ts";
import { enter, syncLane } from "./enter.ts";
import { writePayload, type WrittenFile } from "./payload.ts";
import { enterFirst, settleLeftovers, settleStaged, withdraw } from "./staged.ts";

/** What is to be published: checked, and without defaults left to fill in. */
export interface Publication {
  readonly bodies: readonly (readonly [name: string, body: Body])[];
  readonly facts: Omit<Manifest, "id" | "key" | "files" | "createdAt" | "producer" | "notBefore" | "expiresAt">;
  /** Undefined: the id. A function is asked when the files are written. */
  readonly key?: string | ((files: readonly WrittenFile[]) => string) | undefined;
  readonly records: Readonly<Record<string, number>>;
  readonly contentTypes: Readonly<Record<string, string>>;
  /**
   * What another program has said of the files. It stands in the manifest also where it does not fit: then the
   * check of the consumer fails, and the ticket ends with the dead letters.
   */
  readonly declared?: Readonly<Record<string, Declared>> | undefined;
  readonly delayMs?: number | undefined;
  readonly expiresMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Asked when the size is known and nothing can be seen yet: rejects when the box has no room for it. */
  readonly admit?: ((bytes: number, id: string) => Promise<void>) | undefined;
}

interface Declared {
  readonly size?: number | undefined;
  readonly sha256?: string | undefined;
}

export interface Published {
  readonly id: string;
  readonly key: string;
  /** True when the key was published or processed before; `id` is then the first one's. */
  readonly duplicate: boolean;
}

export async function publish(box: Box, publication: Publication): Promise<Published> {
  await settleLeftovers(box);
  const id = box.newId();
  const session = await box.ground.session();
  const staged = await stageTicket(box, session, id);
  let ticket: Ticket;
  try {
    ticket = await makeTicket(box, id, publication);
    const bytes = encodeRecord({ ...ticketKind, decode: (body) => body }, ticketBody(ticket));
    await fill(box, staged, bytes);
    publication.signal?.throwIfAborted();
    if (ticket.isKeyed) {
      const first = await claimKey(box, session, staged, ticket);
      if (first !== undefined) {
        await withdraw(box, staged, id);
        await enterFirst(box, first);
        return { id: first.manifest.id, key: ticket.manifest.key, duplicate: true };
      }
    }
  } catch (error) {
    // It is not known whether the key was won: the key itself tells, now or later.
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) await settleStaged(box, staged);
    else await withdraw(box, staged, id);
    throw error;
  }
  const { key } = ticket.manifest;
  if (!(await enterStaged(box, staged, ticket))) {
    if (!ticket.isKeyed) throw takenForDead(staged, undefined);
    // Another process has published it, but may not have synced it yet.
    if (!(await syncLane(box, ticket.manifest))) throw outcomeUnknown(staged, undefined);
  }
  return { id, key, duplicate: false };
}

async function stageTicket(box: Box, session: HolderSession, id: string): Promise<string> {
  const directory = await box.staging(session);
  const staged = `${directory}/${formatTicketName(newTicketName(id))}`;
  try {
    await createUniqueFile(box.disk, staged, new Uint8Array(), { sync: false });
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
    session.reportSwept(session.temp);
    throw takenForDead(staged, error);
  }
  return staged;
}

/**
 * A ticket that has won its key is published, whatever becomes of this call: another publisher may have been told
 * so. It is entered with the next publish of this process, or when this process closes or dies.
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

async function makeTicket(box: Box, id: string, publication: Publication): Promise<Ticket> {
  const { bodies, facts, key, delayMs, expiresMs, signal, admit } = publication;
  const { files, inline } = await writePayload(box, id, bodies, signal);
  await admit?.(
    files.reduce((sum, { size }) => sum + size, 0),
    id,
  );
  const { name, pid } = box.ground.ports.host;
  // After the payload, which may take hours: a ticket is as old as its publication.
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
    ...(inline === undefined ? {} : { inline }),
  };
}

function describeFile(file: WrittenFile, { records, contentTypes, declared = {} }: Publication): ManifestFile {
  const { name } = file;
  const said = ownValue(declared, name);
  const count = ownValue(records, name);
  const contentType = ownValue(contentTypes, name);
  return {
    name,
    size: said?.size ?? file.size,
    sha256: said?.sha256 ?? file.sha256,
    ...(count === undefined ? {} : { records: count }),
    ...(contentType === undefined ? {} : { contentType }),
  };
}

/** A file may be named "constructor". */
function ownValue<T>(values: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

async function fill(box: Box, staged: string, bytes: Uint8Array): Promise<void> {
  try {
    const file = await box.disk.open(staged, "write");
    try {
      await file.write(0, bytes);
      if (box.isSynced) await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    throw hasErrno(error, "ENOENT") ? takenForDead(staged, error) : error;
  }
}

/**
 * Undefined when the key is this ticket's now; else the ticket that had it before.
 *
 * The key is a file of its own, linked from the temp directory of this session, which is gone before a sweeper
 * looks for the key. A second name of the staged ticket could still be made after that look: on NFS a link goes by
 * the file that the client once found, wherever a sweeper has moved it.
 */
async function claimKey(
  box: Box,
  session: HolderSession,
  staged: string,
  { isKeyed, manifest }: Ticket,
): Promise<Ticket | undefined> {
  const path = box.layout.key(manifest.key);
  // Before the key: a power cut must not leave a key without the ticket that a sweeper is to publish.
  await box.sync(parentOf(staged), parentOf(parentOf(staged)));
  const record = ticketBody({ isKeyed, stagedBy: session.holder.id, manifest });
  const bytes = encodeRecord({ ...ticketKind, decode: (body) => body }, record);
  const sync = box.isSynced && ((directory: string): Promise<void> => box.sync(directory));
  const temp = await stage(session.staging, bytes, { sync: box.isSynced });
  try {
    const put = (): Promise<boolean> => putStaged(box.disk, temp, path, bytes, { sync, isPermanent: true });
    if (await box.within(parentOf(path), put, { isKept: true })) return undefined;
  } catch (error) {
    throw hasErrno(error, "ENOENT") ? takenForDead(staged, error) : error;
  } finally {
    await discard(session.staging, temp);
  }
  const first = await getRecord(box.disk, ticketKind, path);
  // Durable before it is told: the sync of its publisher may still be to come.
  await box.sync(parentOf(path));
  return first;
}

function takenForDead(path: string, cause: unknown): Error {
  const message = `${path} is gone: other processes took this one for dead while it published. Nothing was published. Publish it again.`;
  return holdfastError("LOCK_LOST", message, { path }, cause);
}

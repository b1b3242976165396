// Publishing: files become a ticket that a consumer can claim.
//
// 1. An empty ticket is created in `staging/<holder>`: from here on a sweeper knows the id.
// 2. The payload is written to where it stays, hashed on the way, and synced.
// 3. The ticket is filled and synced.
// 4. With a key: the ticket gets a second name in `keys/`, which is won once. That decides who publishes.
// 5. The ticket moves to `incoming/` by one rename, and its directory is synced. Then it is acknowledged.
//
// A process that dies before 4 (without a key: before 5) has published nothing: its entry in `staging` goes,
// and with it its payload. One that dies between 4 and 5 has published: the sweeper does step 5 for it.
import type { Body } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { encodeRecord } from "../../format/record.ts";
import { parentOf, removeTree } from "../../durable/publish/directory.ts";
import { linkOnce, moveOnce, outcomeUnknown } from "../../durable/publish/publish.ts";
import { getRecord } from "../../durable/publish/record-file.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import type { Box } from "../box/box.ts";
import { ticketBody, ticketKind, type Manifest, type Ticket } from "../model/manifest.ts";
import { formatTicketName, newTicketName } from "../model/ticket-name.ts";
import { randomName } from "../../format/id.ts";
import { enter } from "./enter.ts";
import { writePayload } from "./payload.ts";

/** What is to be published: checked, and without defaults left to fill in. */
export interface Publication {
  readonly bodies: readonly (readonly [name: string, body: Body])[];
  readonly facts: Omit<Manifest, "id" | "key" | "files" | "createdAt" | "producer" | "notBefore" | "expiresAt">;
  /** Undefined: the id. */
  readonly key?: string | undefined;
  readonly records: Readonly<Record<string, number>>;
  readonly contentTypes: Readonly<Record<string, string>>;
  readonly delayMs?: number | undefined;
  readonly expiresMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Published {
  readonly id: string;
  readonly key: string;
  readonly duplicate: boolean;
}

export async function publish(box: Box, publication: Publication): Promise<Published> {
  const id = box.newId();
  const session = await box.ground.session();
  const staged = `${await box.staging(session)}/${formatTicketName(newTicketName(id))}`;
  await createUniqueFile(box.disk, staged, new Uint8Array(), { sync: false });
  let ticket: Ticket;
  try {
    ticket = await makeTicket(box, id, publication);
    const bytes = encodeRecord({ ...ticketKind, decode: (body) => body }, ticketBody(ticket));
    await fill(box, staged, bytes);
    if (ticket.isKeyed) {
      const first = await claimKey(box, staged, ticket, bytes);
      if (first !== undefined) {
        await discardStaged(box, staged, id);
        return { id: first.manifest.id, key: ticket.manifest.key, duplicate: true };
      }
    }
  } catch (error) {
    // Unless it is not known whether the key was won: then the ticket is rolled forward by a sweeper, or discarded.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) await discardStaged(box, staged, id).catch(() => undefined);
    throw error;
  }
  const { key } = ticket.manifest;
  if (!(await enter(box, staged, newTicketName(id), ticket.manifest)))
    // With a key the sweeper has published it, but may not have synced it yet.
    throw ticket.isKeyed ? outcomeUnknown(staged, undefined) : takenForDead(staged);
  return { id, key, duplicate: false };
}

async function makeTicket(box: Box, id: string, publication: Publication): Promise<Ticket> {
  const { bodies, facts, key, records, contentTypes, delayMs, expiresMs, signal } = publication;
  const { files, inline } = await writePayload(box, id, bodies, signal);
  const { name, pid } = box.ground.ports.host;
  // After the payload, which may take hours: a ticket is as old as its publication.
  const nowMs = await box.nowMs();
  return {
    isKeyed: key !== undefined,
    manifest: {
      id,
      key: key ?? id,
      ...facts,
      files: files.map((file) => ({
        ...file,
        ...(records[file.name] === undefined ? {} : { records: records[file.name] }),
        ...(contentTypes[file.name] === undefined ? {} : { contentType: contentTypes[file.name] }),
      })),
      createdAt: new Date(nowMs),
      producer: { host: name, pid },
      ...(delayMs === undefined ? {} : { notBefore: new Date(nowMs + delayMs) }),
      ...(expiresMs === undefined ? {} : { expiresAt: new Date(nowMs + expiresMs) }),
    },
    ...(inline === undefined ? {} : { inline }),
  };
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

/** Undefined when the key is this ticket's now; else the ticket that had it before. */
async function claimKey(box: Box, staged: string, ticket: Ticket, bytes: Uint8Array): Promise<Ticket | undefined> {
  const path = box.layout.key(ticket.manifest.key);
  await box.ensure(parentOf(path));
  if (!(await linkOnce(box.disk, staged, path, bytes, { mayRepeat: true }))) {
    // Durable before it is told: its publisher may not have come to its sync.
    const first = await getRecord(box.disk, ticketKind, path);
    await box.sync(parentOf(path));
    return first;
  }
  await box.sync(parentOf(path));
  return undefined;
}

/**
 * Takes back a ticket that was not published, with its payload. Only the process that moves the entry away
 * removes the payload: a sweeper may be about to do the same.
 */
export async function discardStaged(box: Box, staged: string, id: string): Promise<void> {
  const { random } = box.ground.ports;
  const trashed = `${await box.ensure(box.layout.trash)}/${id}-${randomName(random.bytes(16))}`;
  if (!(await moveOnce(box.disk, staged, trashed))) return;
  await removeTree(box.disk, box.layout.payload(id));
  await removeTree(box.disk, trashed);
}

function takenForDead(path: string): Error {
  const message = `${path} is gone: other processes took this one for dead while it published. Nothing was published. Publish it again.`;
  return holdfastError("LOCK_LOST", message, { path });
}

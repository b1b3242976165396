// Describes a ticket: its manifest, state, attempts and result.
import { messageOf } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { idTimeMs } from "../../format/id.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { nameExists } from "../box/names.ts";
import { findProgress } from "../consume/progress.ts";
import { noteKind } from "../consume/settle.ts";
import { findCommitted, type LedgerEntry } from "../ledger/ledger.ts";
import type { AttemptNote, TicketInfo } from "../model/handoff.ts";
import { priorityDefault, ticketKind, type Manifest, type Ticket } from "../model/manifest.ts";
import { attemptOf, type TicketName } from "../model/ticket-name.ts";
import { findTicket, undefinedIfDamaged } from "./find.ts";
import type { FoundTicket } from "./tickets.ts";

/** Returns undefined if the ticket has moved. */
export async function describeTicket(box: Box, found: FoundTicket): Promise<TicketInfo | undefined> {
  const { name, path, state, holder } = found;
  const read = await readTicket(box, found);
  if (read === undefined) return undefined;
  const progress = state === "processing" ? await undefinedIfDamaged(findProgress(box, name)) : undefined;
  const info = holder === undefined ? undefined : await box.ground.findHolder(holder);
  const common = {
    attempt: attemptOf(name),
    ...(info === undefined ? {} : { holder: info }),
    ...(progress === undefined ? {} : { progress }),
    history: await historyOf(box, name),
    duplicate: name.isDuplicate,
  };
  if ("damage" in read) {
    if (!(await nameExists(box.disk, path))) return undefined;
    return { ...unknownOf(name), state, ...common, outputs: [], damaged: read.damage };
  }
  const { manifest } = read.ticket;
  const entry = await findEntry(box, manifest, name);
  return {
    ...manifest,
    state: isDone(name, entry) ? "archive" : state,
    ...common,
    ...(entry?.committed.result === undefined ? {} : { result: entry.committed.result }),
    outputs: entry?.committed.outputs ?? [],
  };
}

/**
 * Returns the entry committed under a ticket's key. Most waiting tickets have none, so its absence
 * must be found out cheaply.
 */
async function findEntry(box: Box, { id, key }: Manifest, name: TicketName): Promise<LedgerEntry | undefined> {
  // The key is the ticket's own id, so nothing is committed before its first claim.
  if (key === id && name.claims === 0) return undefined;
  const path = box.layout.ledger(key, name.replays);
  // Only on a local disk: on a share, this would be one more request.
  if (box.disk.volume.kind === "local" && !(await undefinedIfDamaged(box.disk.canOpen(path)))) return undefined;
  return await undefinedIfDamaged(findCommitted(box, path));
}

/**
 * Describes a ticket. Searches it again if it moves meanwhile. Returns undefined if it does not
 * exist.
 */
export async function describeFound(box: Box, found: FoundTicket | undefined): Promise<TicketInfo | undefined> {
  for (let at = found; at !== undefined;) {
    const info = await describeTicket(box, at);
    if (info !== undefined) return info;
    // The ticket moved before it was read, or it is damaged.
    const next = await findTicket(box, at.name.id);
    at = next?.path === at.path ? undefined : next;
  }
  return undefined;
}

/**
 * Returns the content of a ticket's file, or the reason why it cannot be read; undefined if the
 * file is gone.
 */
export async function readTicket(
  box: Box,
  { name, path }: FoundTicket,
): Promise<{ readonly ticket: Ticket } | { readonly damage: string } | undefined> {
  try {
    const ticket = await findRecord(box.disk, ticketKind, path);
    if (ticket === undefined || ticket.manifest.id === name.id) return ticket && { ticket };
    return { damage: `It is a copy of ticket ${ticket.manifest.id}.` };
  } catch (error) {
    if (isUnreadable(error)) return { damage: messageOf(error) };
    if (hasErrno(error, "ESTALE", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Returns a manifest for a ticket of which only the name is readable. */
function unknownOf({ id }: TicketName): Manifest {
  const producer = { host: "", pid: 0 };
  return { id, key: "", files: [], createdAt: new Date(idTimeMs(id)), producer, priority: priorityDefault };
}

/** The ledger is authoritative: if a worker died after its commit, only the move to the archive is missing. */
function isDone({ id }: TicketName, entry: LedgerEntry | undefined): boolean {
  return entry?.committed.id === id;
}

/** At most this many notes are reported, the latest ones. */
const notesMax = 100;
/**
 * Up to this many claims, notes are read by name. With more claims, a listing shows which of them
 * have a note: a claim that was given back has none.
 */
const claimsAskedMax = 20;

/** Returns the notes in the order of the attempts, at most the last 100. */
export async function historyOf(box: Box, name: TicketName): Promise<AttemptNote[]> {
  const history: AttemptNote[] = [];
  for (const claim of (await notedClaims(box, name)).slice(-notesMax)) {
    const note = await undefinedIfDamaged(findRecord(box.disk, noteKind, box.layout.note(name.id, String(claim))));
    if (note === undefined) continue;
    const { attempt, at, outcome, reason } = note;
    history.push({ attempt, at: new Date(at), outcome, reason });
  }
  return history;
}

/** Returns the claims that may have a note, in order. */
export async function notedClaims(box: Box, { id, claims }: TicketName): Promise<number[]> {
  if (claims <= claimsAskedMax) return Array.from({ length: claims }, (_, index) => index + 1);
  const pattern = new RegExp(`^${id}-([0-9]+)\\.json$`);
  const found = (await box.names(parentOf(box.layout.note(id, "")))).map((name) => Number(pattern.exec(name)?.[1]));
  return found.filter((claim) => claim >= 1 && claim <= claims).sort((a, b) => a - b);
}

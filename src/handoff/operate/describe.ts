// What is told of a ticket: its manifest, its state, what was tried, and what came of it.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { idTimeMs } from "../../format/id.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { findProgress } from "../consume/progress.ts";
import { noteKind } from "../consume/settle.ts";
import { findCommitted, type LedgerEntry } from "../ledger/ledger.ts";
import type { AttemptNote, TicketInfo } from "../model/handoff.ts";
import { priorityDefault, ticketKind, type Manifest, type Ticket } from "../model/manifest.ts";
import { attemptOf, type TicketName } from "../model/ticket-name.ts";
import { findTicket, orUndefined } from "./find.ts";
import type { FoundTicket } from "./tickets.ts";

/** Undefined for a ticket that moved on. */
export async function describeTicket(box: Box, found: FoundTicket): Promise<TicketInfo | undefined> {
  const { name, path, state, holder } = found;
  const read = await readTicket(box, found);
  if (read === undefined) return undefined;
  const progress = state === "processing" ? await findProgress(box, name) : undefined;
  const info = holder === undefined ? undefined : await box.ground.findHolder(holder);
  const common = {
    attempt: attemptOf(name),
    ...(info === undefined ? {} : { holder: info }),
    ...(progress === undefined ? {} : { progress }),
    history: await historyOf(box, name),
    duplicate: name.isDuplicate,
  };
  if ("damage" in read) {
    if (!(await box.disk.canOpen(path))) return undefined;
    return { ...unknownOf(name), state, ...common, outputs: [], damaged: read.damage };
  }
  const { manifest } = read.ticket;
  const entry = await orUndefined(findCommitted(box, box.layout.ledger(manifest.key, name.replays)));
  return {
    ...manifest,
    state: isDone(name, entry) ? "archive" : state,
    ...common,
    ...(entry?.committed.result === undefined ? {} : { result: entry.committed.result }),
    outputs: entry?.committed.outputs ?? [],
  };
}

/** The same of a ticket wherever it is by now; undefined when there is none, or none any more. */
export async function describeFound(box: Box, found: FoundTicket | undefined): Promise<TicketInfo | undefined> {
  for (let at = found; at !== undefined;) {
    const info = await describeTicket(box, at);
    if (info !== undefined) return info;
    // It moved on between the two looks, or it is damaged.
    const next = await findTicket(box, at.name.id);
    at = next?.path === at.path ? undefined : next;
  }
  return undefined;
}

/** What the file of a ticket says, or why it cannot be read; undefined when it is gone. */
export async function readTicket(
  box: Box,
  { name, path }: FoundTicket,
): Promise<{ readonly ticket: Ticket } | { readonly damage: string } | undefined> {
  try {
    const ticket = await findRecord(box.disk, ticketKind, path);
    if (ticket === undefined || ticket.manifest.id === name.id) return ticket && { ticket };
    return { damage: `It is a copy of ticket ${ticket.manifest.id}.` };
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) return { damage: error.message };
    if (hasErrno(error, "ESTALE", "EISDIR", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** The manifest of a ticket of which only the name is left. */
function unknownOf({ id }: TicketName): Manifest {
  const producer = { host: "", pid: 0 };
  return { id, key: "", files: [], createdAt: new Date(idTimeMs(id)), producer, priority: priorityDefault };
}

/** The ledger is the truth: a worker that died after its commit leaves only the move to the archive to be done. */
function isDone({ id }: TicketName, entry: LedgerEntry | undefined): boolean {
  return entry?.committed.id === id;
}

/** How much of a history is told: the latest. */
const notesMax = 100;
/** Of so many claims each is asked for its note. Of more a listing tells which have one: what was given back has none. */
const claimsAskedMax = 20;

/** In the order of the attempts; at most the last 100. */
export async function historyOf(box: Box, name: TicketName): Promise<AttemptNote[]> {
  const history: AttemptNote[] = [];
  for (const claim of (await notedClaims(box, name)).slice(-notesMax)) {
    const note = await orUndefined(findRecord(box.disk, noteKind, box.layout.note(name.id, String(claim))));
    if (note === undefined) continue;
    const { attempt, at, outcome, reason } = note;
    history.push({ attempt, at: new Date(at), outcome, reason });
  }
  return history;
}

/** Those that may have a note, in their order. */
async function notedClaims(box: Box, { id, claims }: TicketName): Promise<number[]> {
  if (claims <= claimsAskedMax) return Array.from({ length: claims }, (_, index) => index + 1);
  const pattern = new RegExp(`^${id}-([0-9]+)\\.json$`);
  const found = (await box.names(parentOf(box.layout.note(id, "")))).map((name) => Number(pattern.exec(name)?.[1]));
  return found.filter((claim) => claim >= 1 && claim <= claims).sort((a, b) => a - b);
}

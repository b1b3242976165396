// What a box has, in the form in which it is copied: its keys, its ledger, its tickets in every
// state, and its pause. Both engines read and write this form.
import { findFault } from "../deliver/file-check.ts";
import { holdfastError } from "../../errors.ts";
import { dayName, minuteName } from "../box/layout.ts";
import type { AttemptRecord } from "../consume/settle.ts";
import type { Committed } from "../ledger/ledger.ts";
import { ticketBody, type ManifestFile, type Ticket } from "../model/manifest.ts";
import type { TransferEnd, TransferItem } from "../../part/transfer/transfer-end.ts";
import { idTimeMs } from "../../format/id.ts";

/** A key, and the ticket that won it. */
export interface KeyItem extends TransferItem {
  readonly kind: "key";
  readonly key: string;
  readonly ticket: Ticket;
}

/** An entry of the ledger, with its outputs. */
export interface EntryItem extends TransferItem {
  readonly kind: "entry";
  readonly committed: Committed;
  readonly open: (output: Committed["outputs"][number]) => AsyncIterable<Uint8Array>;
}

/** The states of a ticket that nobody works on. */
export type RestingState = "incoming" | "delayed" | "parked" | "archive" | "error";

export interface CopiedNote extends AttemptRecord {
  readonly claims: number;
}

/** What is copied of a ticket, besides its files. */
export interface TicketFacts {
  readonly state: RestingState;
  readonly ticket: Omit<Ticket, "inline" | "stagedBy">;
  readonly claims: number;
  readonly forgiven: number;
  readonly replays: number;
  readonly isDuplicate: boolean;
  /** True if its files are in the ticket itself. */
  readonly isInline: boolean;
  /** True if it has a place in the order of its group. */
  readonly isPlaced: boolean;
  readonly dueMs?: number | undefined;
  /** When it entered the queue; a folder knows the minute. */
  readonly enteredMs: number;
  /** When it was done or failed; a folder knows the day. */
  readonly settledMs?: number | undefined;
  readonly notes: readonly CopiedNote[];
}

export interface BoxTicketItem extends TransferItem, TicketFacts {
  readonly kind: "ticket";
  readonly open: (file: ManifestFile) => AsyncIterable<Uint8Array>;
}

export type BoxItem = KeyItem | EntryItem | BoxTicketItem;

export interface CopiedPause {
  readonly host: string;
  readonly at?: string | undefined;
  readonly reason?: string | undefined;
}

export interface BoxEnd extends TransferEnd<BoxItem> {
  pause(): Promise<CopiedPause | undefined>;
}

/** The reason for which a box is paused while a copy of `from` arrives in it. */
export function copyReason(from: string): string {
  return `holdfast copy: not all of ${from} has arrived`.slice(0, 1_024);
}

export function keyItem(key: string, ticket: Ticket): KeyItem {
  const { stagedBy: _by, inline: _inline, ...rest } = ticket;
  const content = { key, ticket: ticket.manifest.id };
  return { kind: "key", id: `key ${JSON.stringify(key)}`, content, count: 0, check: async () => undefined, key, ticket: rest }; // prettier-ignore
}

/** The owner of a key whose own record is gone, because only the ledger still needs it. */
export function goneTicket(id: string, key: string): Ticket {
  const producer = { host: "", pid: 0 };
  return { isKeyed: true, manifest: { id, key, files: [], createdAt: new Date(idTimeMs(id)), producer, priority: 5 } };
}

/** Tickets that an entry has sent are published by now, so the copy does not send them again. */
export function entryItem({ sent: _sent, ...rest }: Committed, open: EntryItem["open"]): EntryItem {
  const committed: Committed = { ...rest, sent: [] };
  const { key, replays, id, outputs } = committed;
  const { claims, holder, at, result } = committed;
  return {
    kind: "entry",
    id: `ledger entry ${JSON.stringify(key)}${replays === 0 ? "" : ` (replay ${replays})`}`,
    content: [id, claims, holder, at, result === undefined ? [] : [result], outputs],
    count: 0,
    check: async (signal) => {
      for (const output of outputs) await mustMatch(id, output, open(output), signal);
    },
    committed,
    open,
  };
}

/** `place` is the number of tickets of its group before it, if it has a place in that order. */
export function ticketItem(facts: TicketFacts, place: number | undefined, open: BoxTicketItem["open"]): BoxTicketItem {
  const { ticket, state, claims, forgiven, replays, isDuplicate, dueMs, enteredMs, settledMs, notes } = facts;
  const { id, files } = ticket.manifest;
  return {
    kind: "ticket",
    id: `ticket ${id}`,
    content: [
      ...[state, claims, forgiven, replays, isDuplicate, ticketBody(ticket), place ?? null],
      dueMs === undefined ? null : Math.ceil(dueMs),
      state === "incoming" && place === undefined ? minuteName(enteredMs) : null,
      settledMs === undefined ? null : dayName(settledMs),
      notes.map((note) => [note.claims, note.attempt, note.at, note.outcome, note.reason, note.holder]),
    ],
    count: 1,
    check: async (signal) => {
      for (const file of files) await mustMatch(id, file, open(file), signal);
    },
    ...facts,
    open,
  };
}

/** Counts the tickets of each group, to number those that have a place. */
export class Places {
  readonly #counts = new Map<string, number>();

  next(group: string | undefined): number | undefined {
    if (group === undefined) return undefined;
    const place = this.#counts.get(group) ?? 0;
    this.#counts.set(group, place + 1);
    return place;
  }
}

/** Throws PAYLOAD_MISMATCH if the bytes of a file are not those that were published. */
export async function mustMatch(
  id: string,
  file: Pick<ManifestFile, "name" | "size" | "sha256">,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const fault = await findFault(bytes, file, signal);
  if (fault !== undefined) throw mismatch(id, file.name, fault);
}

export function mismatch(id: string, file: string, what: string): Error {
  const message = `The file ${JSON.stringify(file)} of ticket ${id} differs from its manifest: ${what}. Restore it from a backup, or discard the ticket; then repeat the copy.`;
  return holdfastError("PAYLOAD_MISMATCH", message, { id, file });
}

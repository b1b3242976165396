// Settling a claim: done, to be tried again, or failed for good. Each ends with one rename of the ticket out of
// the directory of the session that has claimed it. A session that was taken for dead finds no ticket there.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { countOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { moveOnce, putIfAbsent } from "../../durable/publish/publish.ts";
import type { Box } from "../box/box.ts";
import {
  commit,
  commitDirectory,
  findCommitted,
  isSameCommit,
  type Committed,
  type LedgerEntry,
} from "../ledger/ledger.ts";
import { attemptOf, formatTicketName, unrankedOf } from "../model/ticket-name.ts";
import { enter } from "../publish/enter.ts";
import type { Claim, Claimed } from "./claim.ts";
import type { StagedOutputs } from "./outputs.ts";

export const noteOutcomes = ["retry", "fail", "lost", "expired", "mismatch"] as const;
export type NoteOutcome = (typeof noteOutcomes)[number];

/** What became of one attempt. */
export interface Note {
  readonly attempt: number;
  readonly at: string;
  readonly outcome: NoteOutcome;
  readonly reason: string;
  readonly holder: string;
  /** Of a retry: not before this time of the server's clock, in milliseconds. */
  readonly dueMs?: number;
}

export const noteKind: RecordKind<Note> = {
  kind: "note",
  decode: (value) => {
    const { attempt, at, outcome, reason, holder, dueMs } = objectOf(value);
    return {
      attempt: countOf(attempt),
      at: textOf(at),
      outcome: wordOf(outcome, noteOutcomes),
      reason: textOf(reason),
      holder: textOf(holder),
      ...(dueMs === undefined ? {} : { dueMs: countOf(dueMs) }),
    };
  },
};

/**
 * Commits the result under the ticket's key. CLAIM_LOST when the claim was gone before. Gives what was
 * committed: the result of another ticket, if that had the same key and was first.
 */
export async function commitResult(
  box: Box,
  claim: Claimed,
  result: unknown,
  outputs?: StagedOutputs,
): Promise<LedgerEntry> {
  const { session, name, ticket } = claim;
  mustStillHave(claim);
  const path = box.layout.ledger(ticket.manifest.key, name.replays);
  const committed: Committed = {
    key: ticket.manifest.key,
    id: name.id,
    claims: name.claims,
    replays: name.replays,
    holder: session.holder.id,
    at: new Date(await box.nowMs()).toISOString(),
    ...(result === undefined ? {} : { result }),
    ...(outputs?.facts ?? { outputs: [], sent: [] }),
  };
  const entry =
    outputs === undefined || outputs.isEmpty
      ? await commitRecord(box, claim, path, committed)
      : await commitOutputs(box, outputs, path, committed);
  if (entry === undefined) throw claimLost(claim);
  // Another claim of the same ticket has committed: this one was taken for dead before, or that one was parked by
  // another program for a shorter time than its work took. Then the ticket is still here, and it is done.
  if (entry.committed.id === name.id && !isSameCommit(entry.committed, committed)) {
    if (entry.committed.sent.length === 0) await archive(box, claim, entry);
    throw claimLost(claim);
  }
  return entry;
}

async function commitRecord(box: Box, claim: Claimed, path: string, committed: Committed): Promise<LedgerEntry> {
  try {
    // Of the session that has the claim, and not of the one that this process may have by now.
    return await commit(box, claim.session.staging, path, committed);
  } catch (error) {
    if (claim.session.isOver) throw claimLost(claim, error);
    throw error;
  }
}

/** Undefined when what was staged is gone, and is not what was committed. */
async function commitOutputs(
  box: Box,
  outputs: StagedOutputs,
  path: string,
  committed: Committed,
): Promise<LedgerEntry | undefined> {
  let staged: string;
  try {
    staged = await outputs.seal(committed);
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
    // It was committed by an earlier try whose answer was lost, or other processes took this one for dead.
    return await findCommitted(box, path, { isSure: true });
  }
  return await commitDirectory(box, staged, path, committed);
}

/**
 * Moves a ticket to the archive whose key is committed: as a duplicate, if that was done by another ticket.
 * Without a sync: the ledger is the truth, and a ticket that comes back finds its entry there.
 */
export async function archive(box: Box, claim: Claim, { committed }: LedgerEntry): Promise<void> {
  const directory = box.layout.archive(await box.nowMs());
  const name = formatTicketName({ ...unrankedOf(claim.name), isDuplicate: committed.id !== claim.name.id });
  await box.within(directory, () => moveOnce(box.disk, claim.path, `${directory}/${name}`));
}

/** Back to where consumers look, after `delayMs`. CLAIM_LOST. */
export async function retryLater(box: Box, claim: Claimed, delayMs: number, reason: string): Promise<void> {
  mustStillHave(claim);
  const dueMs = Math.ceil((await box.nowMs()) + delayMs);
  await note(box, claim, "retry", reason, dueMs);
  const { priority, group } = claim.ticket.manifest;
  const notBefore = new Date(dueMs);
  if (!(await enter(box, claim.path, claim.name, { priority, ...(group === undefined ? {} : { group }), notBefore })))
    throw claimLost(claim);
}

/**
 * Back at once, or after `delayMs`, and not counted as an attempt. False when the claim was gone: then it is back
 * already.
 */
export async function giveBack(
  box: Box,
  claim: Claimed,
  { delayMs = 0 }: { readonly delayMs?: number } = {},
): Promise<boolean> {
  const { priority, group } = claim.ticket.manifest;
  const name = { ...claim.name, forgiven: claim.name.forgiven + 1 };
  return await enter(box, claim.path, name, {
    priority,
    ...(group === undefined ? {} : { group }),
    ...(delayMs === 0 ? {} : { notBefore: new Date(Math.ceil((await box.nowMs()) + delayMs)) }),
  });
}

/** To the dead letters, with the reason. CLAIM_LOST. */
export async function failForGood(box: Box, claim: Claim, outcome: NoteOutcome, reason: string): Promise<void> {
  mustStillHave(claim);
  await note(box, claim, outcome, reason);
  const directory = box.layout.error(await box.nowMs());
  const path = `${directory}/${formatTicketName(unrankedOf(claim.name))}`;
  if (!(await box.within(directory, () => moveOnce(box.disk, claim.path, path)))) throw claimLost(claim);
  await box.sync(directory);
}

/** Before the ticket moves: a dead letter has a reason. */
async function note(box: Box, claim: Claim, outcome: NoteOutcome, reason: string, dueMs?: number): Promise<void> {
  const { session, name } = claim;
  try {
    await writeNote(box, { session, name, holder: session.holder.id }, outcome, reason, dueMs);
  } catch (error) {
    if (session.isOver || hasErrno(error, "ENOENT")) throw claimLost({ name }, error);
    throw error;
  }
}

/** What became of one claim of `holder`, once: the first word stays. `session` is of the process that writes it. */
export async function writeNote(
  box: Box,
  { session, name, holder }: Pick<Claim, "session" | "name"> & { readonly holder: string },
  outcome: NoteOutcome,
  reason: string,
  dueMs?: number,
): Promise<void> {
  const at = new Date(await box.nowMs()).toISOString();
  const body: Note = {
    attempt: attemptOf(name),
    at,
    outcome,
    reason,
    holder,
    ...(dueMs === undefined ? {} : { dueMs }),
  };
  const path = box.layout.note(name.id, String(name.claims));
  const options = { sync: box.isSynced, isPermanent: true };
  await box.within(parentOf(path), () => putIfAbsent(session.staging, path, encodeRecord(noteKind, body), options));
}

export function mustStillHave({ session, name }: Pick<Claim, "session" | "name">): void {
  if (session.isOver) throw claimLost({ name }, session.signal.reason);
}

export function claimLost({ name }: Pick<Claim, "name">, cause?: unknown): Error {
  const attempt = attemptOf(name);
  const message = `The claim of ticket ${name.id} (attempt ${attempt}) is gone: this process was silent for its lease, and the ticket went back. Leave it to the process that has it now.`;
  return holdfastError("CLAIM_LOST", message, { id: name.id, attempt }, cause);
}

// Settles a claim: the ticket is done, will be retried, or has failed permanently. Each ends with
// one rename of the ticket out of the directory of the session that claimed it. A session that was
// judged dead finds no ticket in it.
import { findIfThere, hasErrno } from "../../ports/disk-error.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { countOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { moveOnce, putIfAbsent } from "../../durable/publish/publish.ts";
import type { Box } from "../box/box.ts";
import { commit } from "../ledger/group-commit.ts";
import { commitDirectory, findCommitted, isSameCommit, type Committed, type LedgerEntry } from "../ledger/ledger.ts";
import { attemptOf, formatTicketName, unrankedOf } from "../model/ticket-name.ts";
import { enter } from "../publish/enter.ts";
import { claimLost } from "../deliver/settler.ts";
import type { ClaimResult, ClaimedTicket } from "./claim.ts";
import type { StagedOutputs } from "./outputs.ts";

/** How often a move is tried again because another process removed the target directory. */
const dayTriesMax = 5;

export const attemptOutcomes = ["retry", "fail", "lost", "expired", "mismatch"] as const;
export type AttemptOutcome = (typeof attemptOutcomes)[number];

/** The outcome of one attempt. */
export interface AttemptRecord {
  readonly attempt: number;
  readonly at: string;
  readonly outcome: AttemptOutcome;
  readonly reason: string;
  readonly holder: string;
  /** For a retry: the ticket is not due before this time of the server's clock, in milliseconds. */
  readonly dueMs?: number;
}

export const noteKind: RecordKind<AttemptRecord> = {
  kind: "note",
  decode: (value) => {
    const { attempt, at, outcome, reason, holder, dueMs } = objectOf(value);
    return {
      attempt: countOf(attempt),
      at: textOf(at),
      outcome: wordOf(outcome, attemptOutcomes),
      reason: textOf(reason),
      holder: textOf(holder),
      ...(dueMs === undefined ? {} : { dueMs: countOf(dueMs) }),
    };
  },
};

/**
 * Commits the result under the ticket's key. Returns the committed result, which is that of another
 * ticket if it committed under the same key first. Throws CLAIM_LOST if the claim was already lost.
 */
export async function commitResult(
  box: Box,
  claim: ClaimedTicket,
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
  if (entry === undefined) throw claimTaken(claim);
  // Another claim of the same ticket has committed. Either this session was judged dead, or the
  // other claim was parked for a shorter time than its work took. In the second case the ticket is
  // still here, and it is done.
  if (entry.committed.id === name.id && !isSameCommit(entry.committed, committed)) {
    if (entry.committed.sent.length === 0) await archive(box, claim, entry);
    throw claimTaken(claim);
  }
  return entry;
}

async function commitRecord(box: Box, claim: ClaimedTicket, path: string, committed: Committed): Promise<LedgerEntry> {
  try {
    // Uses the session that holds the claim; this process may have a new one by now.
    return await commit(box, claim.session, path, committed);
  } catch (error) {
    if (claim.session.isOver) throw claimTaken(claim, error);
    throw error;
  }
}

/** Returns undefined if the staged directory is gone and was not committed. */
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
    // Either an earlier try committed it and its reply was lost, or other processes judged this one
    // dead.
    return await findCommitted(box, path, { isSure: true });
  }
  return await commitDirectory(box, staged, path, committed);
}

/**
 * Moves a ticket whose key is committed to the archive; as a duplicate, if another ticket committed
 * it. Not synced: the ledger is authoritative, and if a power cut brings the ticket back, its next
 * claim finds the entry.
 */
export async function archive(box: Box, claim: ClaimResult, { committed }: LedgerEntry): Promise<void> {
  const directory = box.layout.archive(await box.nowMs());
  const name = formatTicketName({ ...unrankedOf(claim.name), isDuplicate: committed.id !== claim.name.id });
  await moveToDay(box, claim.path, directory, name);
}

/**
 * Moves a ticket into the directory of a day. Returns false if the ticket is gone. Recreates the
 * directory if it disappears: a collector whose clock is ahead removes today's directory as soon as
 * it is empty.
 */
async function moveToDay(box: Box, from: string, directory: string, name: string): Promise<boolean> {
  for (let tries = 1; ; tries++)
    try {
      return await box.within(directory, () => moveOnce(box.disk, from, `${directory}/${name}`));
    } catch (error) {
      if (!hasErrno(error, "ENOENT") || tries >= dayTriesMax) throw error;
    }
}

/** Returns the ticket to the queue, due after `delayMs`. Throws CLAIM_LOST. */
export async function retryLater(box: Box, claim: ClaimedTicket, delayMs: number, reason: string): Promise<void> {
  mustStillHave(claim);
  const dueMs = Math.ceil((await box.nowMs()) + delayMs);
  await note(box, claim, "retry", reason, dueMs);
  const { priority, group } = claim.ticket.manifest;
  if (!(await enter(box, claim.path, claim.name, { priority, group, notBefore: new Date(dueMs) })))
    throw claimTaken(claim);
}

/**
 * Returns the ticket to the queue, at once or after `delayMs`, without counting an attempt. Returns
 * false if the claim was lost: then the ticket is already back.
 */
export async function returnToQueue(box: Box, claim: ClaimedTicket, delayMs: number = 0): Promise<boolean> {
  const { priority, group } = claim.ticket.manifest;
  const name = { ...claim.name, forgiven: claim.name.forgiven + 1 };
  const notBefore = delayMs === 0 ? undefined : new Date(Math.ceil((await box.nowMs()) + delayMs));
  return await enter(box, claim.path, name, { priority, group, notBefore });
}

/** Moves the ticket to the dead letters, with the reason. Throws CLAIM_LOST. */
export async function failPermanently(
  box: Box,
  claim: ClaimResult,
  outcome: AttemptOutcome,
  reason: string,
): Promise<void> {
  mustStillHave(claim);
  await note(box, claim, outcome, reason);
  const directory = box.layout.error(await box.nowMs());
  if (!(await moveToDay(box, claim.path, directory, formatTicketName(unrankedOf(claim.name))))) throw claimTaken(claim);
  // A collector whose clock is ahead may have removed both the ticket and the directory.
  await findIfThere(box.sync(directory));
}

/** The note is written before the ticket moves, so that every dead letter has a reason. */
async function note(
  box: Box,
  claim: ClaimResult,
  outcome: AttemptOutcome,
  reason: string,
  dueMs?: number,
): Promise<void> {
  const { session, name } = claim;
  try {
    await writeNote(box, { session, name, holder: session.holder.id }, outcome, reason, dueMs);
  } catch (error) {
    if (session.isOver || hasErrno(error, "ENOENT")) throw claimTaken({ name }, error);
    throw error;
  }
}

/**
 * Records the outcome of one claim of `holder`. If the claim already has a note, that note stays.
 * `session` is that of the process that writes it.
 */
export async function writeNote(
  box: Box,
  { session, name, holder }: Pick<ClaimResult, "session" | "name"> & { readonly holder: string },
  outcome: AttemptOutcome,
  reason: string,
  dueMs?: number,
): Promise<void> {
  const at = new Date(await box.nowMs()).toISOString();
  const body: AttemptRecord = {
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

export function mustStillHave({ session, name }: Pick<ClaimResult, "session" | "name">): void {
  if (session.isOver) throw claimTaken({ name }, session.signal.reason);
}

export function claimTaken({ name }: Pick<ClaimResult, "name">, cause?: unknown): Error {
  return claimLost({ id: name.id, attempt: attemptOf(name) }, cause);
}

// Checks the tickets of a box: each can be read, matches its name, and has its payload.
import { isHoldfastError, messageOf } from "../../../errors.ts";
import { hasErrno, isOutcomeUnknown } from "../../../ports/disk-error.ts";
import { isLink } from "../../../durable/publish/directory.ts";
import { getRecord, isUnreadable } from "../../../durable/publish/record-file.ts";
import type { Box } from "../../box/box.ts";
import { claimTicket } from "../../consume/claim.ts";
import { checkPayload } from "../../consume/payload-check.ts";
import { failPermanently, type AttemptOutcome } from "../../consume/settle.ts";
import { ticketKind, type Ticket } from "../../model/manifest.ts";
import { historyOf } from "../describe.ts";
import type { FoundTicket } from "../tickets.ts";
import type { Inspection, Repair } from "./inspection.ts";

export async function checkTicket(inspection: Inspection, found: FoundTicket): Promise<void> {
  const { box } = inspection;
  const { path, name, holder } = found;
  let ticket: Ticket;
  try {
    ticket = await getRecord(box.disk, ticketKind, path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) {
      // The ticket moved, unless the entry is a dangling link.
      if (await isLink(box.disk, path)) inspection.stray(path);
      return;
    }
    inspection.checked++;
    if (isHoldfastError(error, "NEWER_FORMAT", "NO_PERMISSION")) return inspection.unreadable(path, error);
    if (!isUnreadable(error) && (!isHoldfastError(error, "IO_ERROR") || isOutcomeUnknown(error))) throw error;
    return await reportUnreadable(inspection, found, messageOf(error));
  }
  inspection.checked++;
  const { id } = ticket.manifest;
  if (id !== name.id) return await reportUnreadable(inspection, found, `It is a copy of ticket ${id}.`);
  // The process that claimed the ticket has checked its files, and may finish it at any moment.
  if (holder !== undefined) return;
  try {
    await checkPayload(box, ticket, inspection.signal);
  } catch (error) {
    if (!isHoldfastError(error, "PAYLOAD_MISMATCH")) return inspection.unreadable(path, error);
    await report(inspection, found, "mismatch", error.message);
  }
}

/**
 * An unreadable dead letter is reported each time: it cannot be replayed. A repair moves it aside
 * only if it was a dead letter before this call, so that a person can see its reason first.
 */
async function reportUnreadable(inspection: Inspection, found: FoundTicket, why: string): Promise<void> {
  const { box } = inspection;
  const { path, state, name } = found;
  if (state !== "error" || (await historyOf(box, name)).length === 0)
    return await report(inspection, found, "fail", why);
  if (!(await inspection.isStill(path))) return;
  const remedy = `It is a dead letter, and cannot be replayed: restore it from a backup, or publish its files again; large ones are in ${box.layout.payload(name.id)}. A verify with repair moves it aside.`;
  inspection.damage(path, why, inspection.isFirst ? inspection.aside(path) : undefined, remedy);
}

async function report(inspection: Inspection, found: FoundTicket, outcome: AttemptOutcome, why: string): Promise<void> {
  const { box } = inspection;
  const { path, state, holder, name } = found;
  // A dead letter with a recorded reason needs no report.
  if (state === "error" && (await historyOf(box, name)).length > 0) return;
  if (!(await inspection.isStill(path))) return;
  if (holder !== undefined)
    return inspection.damage(path, why, undefined, "The process that claimed it handles it, or the next one.");
  const isOver = state === "archive" || state === "error";
  inspection.damage(path, why, isOver ? inspection.aside(path) : toDeadLetters(box, found, outcome, why));
}

/** Claims the ticket as a consumer does. If a consumer was faster, the repair does nothing. */
function toDeadLetters(box: Box, { path, name }: FoundTicket, outcome: AttemptOutcome, why: string): Repair {
  return async () => {
    const session = await box.ground.session();
    const claim = await claimTicket(box, session, path, name);
    if (claim === undefined) return;
    try {
      await failPermanently(box, claim, outcome, why);
    } finally {
      box.inProgress.delete(claim.path);
    }
  };
}

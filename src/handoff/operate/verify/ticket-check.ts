// Checks the tickets of a box: each can be read, is what its name says, and has its payload.
import { isHoldfastError } from "../../../errors.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import { getRecord } from "../../../durable/publish/record-file.ts";
import type { Box } from "../../box/box.ts";
import { claimTicket } from "../../consume/claim.ts";
import { checkPayload } from "../../consume/payload-check.ts";
import { failForGood, type NoteOutcome } from "../../consume/settle.ts";
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
    if (hasErrno(error, "ENOENT", "ESTALE")) return;
    if (isHoldfastError(error, "NEWER_FORMAT")) {
      inspection.checked++;
      return inspection.damage(path, error.message, undefined, "Upgrade Holdfast here.");
    }
    if (!isHoldfastError(error, "CORRUPT", "IO_ERROR")) throw error;
    inspection.checked++;
    return await reportUnreadable(inspection, found, error.message);
  }
  inspection.checked++;
  const { id } = ticket.manifest;
  if (id !== name.id) return await reportUnreadable(inspection, found, `It is a copy of ticket ${id}.`);
  // A process that has claimed it has checked it, and may be done with it at any moment.
  if (holder !== undefined) return;
  try {
    await checkPayload(box, ticket, inspection.signal);
  } catch (error) {
    if (!isHoldfastError(error, "PAYLOAD_MISMATCH")) throw error;
    await report(inspection, found, "mismatch", error.message);
  }
}

/**
 * A dead letter whose file cannot be read is told each time: it cannot be replayed. A repair moves it aside only if it
 * was a dead letter before: until then its reason is to be seen.
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

async function report(inspection: Inspection, found: FoundTicket, outcome: NoteOutcome, why: string): Promise<void> {
  const { box } = inspection;
  const { path, state, holder, name } = found;
  // A dead letter that says why it is one needs nothing more.
  if (state === "error" && (await historyOf(box, name)).length > 0) return;
  if (!(await inspection.isStill(path))) return;
  if (holder !== undefined)
    return inspection.damage(path, why, undefined, "The process that has claimed it sees to it, or its successor.");
  const isOver = state === "archive" || state === "error";
  inspection.damage(path, why, isOver ? inspection.aside(path) : toDeadLetters(box, found, outcome, why));
}

/** As a consumer does it, by a claim: one of the two wins. */
function toDeadLetters(box: Box, { path, name }: FoundTicket, outcome: NoteOutcome, why: string): Repair {
  return async () => {
    const session = await box.ground.session();
    const claim = await claimTicket(box, session, path, name);
    if (claim === undefined) return;
    try {
      await failForGood(box, claim, outcome, why);
    } finally {
      box.inHand.delete(claim.path);
    }
  };
}

// Tickets that are due: delayed tickets enter the queue, and parked claims return to it.
import { isUnreadable } from "../../durable/publish/record-file.ts";
import { signal } from "../../telemetry/signals.ts";
import type { Box } from "../box/box.ts";
import { findMinuteMs } from "../box/layout.ts";
import { priorityDefault, type Ticket } from "../model/manifest.ts";
import { attemptOf, findTicketName, unparkedOf, type TicketName } from "../model/ticket-name.ts";
import { enter, type TicketDestination } from "../publish/enter.ts";
import { findReadableTicket } from "../publish/staged.ts";
import { noteLost } from "./lost-note.ts";

/**
 * The directory of a minute is kept this long after it: a machine whose clock is behind may still
 * use it.
 */
const keepMs = 120_000;

/**
 * Moves the tickets that are due. Any number of processes may run it at once: each ticket is moved
 * by one of them. Returns when the next ticket is due, as far as this process knows.
 */
export async function enterDue(box: Box): Promise<number> {
  const nowMs = await box.nowMs();
  let nextMs = Infinity;
  for (const minute of (await box.names(box.layout.delayed)).sort()) {
    const startMs = findMinuteMs(minute);
    if (startMs === undefined) continue;
    if (startMs > nowMs) {
      nextMs = Math.min(nextMs, startMs);
      break;
    }
    const directory = `${box.layout.delayed}/${minute}`;
    const next = await enterDueIn(box, directory, nowMs, enterDelayed);
    nextMs = Math.min(nextMs, next);
    if (next === Infinity && startMs + keepMs < nowMs) await box.disk.rmdir(directory).catch(() => undefined);
  }
  return Math.min(nextMs, await enterDueIn(box, box.layout.parked, nowMs, returnParked));
}

async function enterDueIn(
  box: Box,
  directory: string,
  nowMs: number,
  take: (box: Box, path: string, name: TicketName) => Promise<unknown>,
): Promise<number> {
  let nextMs = Infinity;
  for (const text of await box.names(directory)) {
    const name = findTicketName(text);
    if (name?.rank === undefined) continue;
    if (name.rank > nowMs) nextMs = Math.min(nextMs, name.rank);
    else
      await take(box, `${directory}/${text}`, name).catch((error: unknown) => {
        // The lane of this ticket cannot be read, which `verify` reports. The ticket stays; the
        // others are moved.
        if (!isUnreadable(error)) throw error;
      });
  }
  return nextMs;
}

async function enterDelayed(box: Box, path: string, name: TicketName): Promise<void> {
  await enter(box, path, unparkedOf(name), destinationOf(await findReadableTicket(box, path)));
}

/**
 * The process that moved the ticket writes the note after the move. Before the move, another
 * process may still resume the claim and write its own note, which this one must not displace.
 */
async function returnParked(box: Box, path: string, name: TicketName): Promise<void> {
  const ticket = await findReadableTicket(box, path);
  const back = unparkedOf(name);
  if (!(await enter(box, path, back, destinationOf(ticket)))) return;
  const { directory: location } = box.layout;
  signal("holdfast:ticket.returned", () => ({ location, id: name.id, attempt: attemptOf(name) }));
  if (ticket === undefined) return;
  const until = new Date(name.rank ?? 0).toISOString();
  await noteLost(box, ticket, {
    name: back,
    holder: "",
    reason: `It was parked until ${until}, and no process settled it.`,
  });
}

/** A damaged ticket enters the queue like any other: the process that claims it reports the damage. */
function destinationOf(ticket: Ticket | undefined): TicketDestination {
  const { priority = priorityDefault, group } = ticket?.manifest ?? {};
  return { priority, group };
}

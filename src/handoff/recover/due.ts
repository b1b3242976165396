// What is due: delayed tickets come to where consumers look, parked claims go back.
import type { Box } from "../box/box.ts";
import { findMinuteMs } from "../box/layout.ts";
import { priorityDefault, type Ticket } from "../model/manifest.ts";
import { findTicketName, unparkedOf, type TicketName } from "../model/ticket-name.ts";
import { enter } from "../publish/enter.ts";
import { findWhole } from "../publish/staged.ts";
import { noteLost } from "./lost-note.ts";

/** A directory that is still used by a clock that is behind is not removed. */
const keepMs = 120_000;

/** Any number of processes may do it at once: of each ticket one moves it. Returns when the next one is due, as far as it is known. */
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
    else await take(box, `${directory}/${text}`, name);
  }
  return nextMs;
}

async function enterDelayed(box: Box, path: string, name: TicketName): Promise<void> {
  await enter(box, path, unparkedOf(name), destinationOf(await findWhole(box, path)));
}

/**
 * The note comes after the move, and only of the process that has made it: until then another one may go on with the
 * claim, and what that one says of it must not find this word in its place.
 */
async function returnParked(box: Box, path: string, name: TicketName): Promise<void> {
  const ticket = await findWhole(box, path);
  const back = unparkedOf(name);
  if (!(await enter(box, path, back, destinationOf(ticket))) || ticket === undefined) return;
  const until = new Date(name.rank ?? 0).toISOString();
  await noteLost(box, ticket, {
    name: back,
    holder: "",
    reason: `It was parked until ${until}, and no process settled it.`,
  });
}

/** A damaged ticket goes where every other one goes: the process that claims it sees what is wrong. */
function destinationOf(ticket: Ticket | undefined): { readonly priority: number; readonly group?: string } {
  if (ticket === undefined) return { priority: priorityDefault };
  const { priority, group } = ticket.manifest;
  return group === undefined ? { priority } : { priority, group };
}

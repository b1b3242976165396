// Retention: what was finished long ago goes. The ticket first, by one rename to the trash, which wins or loses
// against a replay; then its payload and its notes; the trash entry last.
import type { Cancel } from "../../common.ts";
import { removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { isHoldfastError } from "../../errors.ts";
import type { Box } from "../box/box.ts";
import { ticketKind } from "../model/manifest.ts";
import type { TicketName } from "../model/ticket-name.ts";
import { namesIn } from "./tickets.ts";

export interface Retention {
  archiveMs?: number | undefined;
  errorMs?: number | undefined;
}

export interface Collected {
  readonly tickets: number;
  readonly bytes: number;
}

const dayMs = 86_400_000;

/** Whole days at a time: the day of its directory is all that is known of when a ticket was finished. */
export async function collect(
  box: Box,
  { archiveMs = Infinity, errorMs = Infinity }: Retention,
  findName: (text: string) => TicketName | undefined,
  { signal }: Cancel = {},
): Promise<Collected> {
  let [tickets, bytes] = [0, 0];
  const nowMs = await box.nowMs();
  for (const [state, keepMs] of [["archive", archiveMs] as const, ["error", errorMs] as const]) {
    const parent = `${box.layout.directory}/${state}`;
    for (const day of (await namesIn(box, parent)).sort()) {
      const startMs = dayStartMs(day);
      if (startMs === undefined || startMs + dayMs + keepMs > nowMs) continue;
      for (const text of await namesIn(box, `${parent}/${day}`)) {
        signal?.throwIfAborted();
        const name = findName(text);
        const size = name === undefined ? undefined : await removeTicket(box, `${parent}/${day}/${text}`, name);
        if (size === undefined) continue;
        tickets++;
        bytes += size;
      }
      await box.disk.rmdir(`${parent}/${day}`).catch(() => undefined);
    }
  }
  return { tickets, bytes };
}

/** How many bytes its payload had; undefined when another process has moved the ticket. */
async function removeTicket(box: Box, path: string, { id, claims }: TicketName): Promise<number | undefined> {
  const trashed = `${await box.ensure(box.layout.trash)}/${id}-retention`;
  if (!(await moveOnce(box.disk, path, trashed))) return undefined;
  let size = 0;
  try {
    const ticket = await findRecord(box.disk, ticketKind, trashed);
    size = ticket?.manifest.files.reduce((sum, file) => sum + file.size, 0) ?? 0;
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT", "NEWER_FORMAT")) throw error;
  }
  await removeTree(box.disk, box.layout.payload(id));
  for (let claim = 1; claim <= claims; claim++) await unlinkIfThere(box.disk, box.layout.note(id, String(claim)));
  await unlinkIfThere(box.disk, trashed);
  return size;
}

function dayStartMs(name: string): number | undefined {
  if (!/^[0-9]{8}$/.test(name)) return undefined;
  const startMs = Date.UTC(Number(name.slice(0, 4)), Number(name.slice(4, 6)) - 1, Number(name.slice(6)));
  return Number.isNaN(startMs) ? undefined : startMs;
}

// Collecting: what was finished long ago goes, and what crashes have left. The ticket first, by one rename to the
// trash, which wins or loses against a replay; then its payload, its notes and its key; the trash entry last.
import type { Cancel } from "../../common.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { checkOptions } from "../../format/known-options.ts";
import type { Box } from "../box/box.ts";
import { dayMs, findDayMs, findMinuteMs } from "../box/layout.ts";
import { compactLedger } from "../ledger/compaction.ts";
import { expireLedger } from "../ledger/expiry.ts";
import type { Collected, HandoffOptions } from "../model/handoff.ts";
import { priorityMax } from "../model/manifest.ts";
import { ticketsOf } from "./tickets.ts";
import { emptyTrash, removeTicket } from "./trash.ts";

/** A directory that a clock which is behind still uses is not removed. */
const keepMs = 120_000;

/**
 * Whole days at a time: the day of its directory is all that is known of when a ticket was finished. Any number of
 * processes may do it at once.
 */
export async function collect(
  box: Box,
  { archiveMs = Infinity, errorMs = Infinity, ledgerMs = Infinity }: NonNullable<HandoffOptions["retention"]>,
  options: Cancel = {},
): Promise<Collected> {
  checkOptions("collect", options, { signal: true });
  let [tickets, bytes] = [0, 0];
  const nowMs = await box.nowMs();
  for (const [state, keptMs] of [["archive", archiveMs] as const, ["error", errorMs] as const])
    for (const directory of await daysBefore(box, state, nowMs - keptMs)) {
      for await (const ticket of ticketsOf(box, { state, directory })) {
        options.signal?.throwIfAborted();
        const size = await removeTicket(box, ticket);
        if (size === undefined) continue;
        tickets++;
        bytes += size;
      }
      await removeIfEmpty(box, directory);
    }
  if (ledgerMs < Infinity) await expireLedger(box, ledgerMs, options);
  await compactLedger(box, options);
  await emptyTrash(box, options);
  await removePastMinutes(box, nowMs);
  return { tickets, bytes };
}

/** The directories of the days that ended before `atMs`, oldest first. */
async function daysBefore(box: Box, state: "archive" | "error", atMs: number): Promise<string[]> {
  const parent = state === "archive" ? box.layout.archives : box.layout.errors;
  return (await box.names(parent))
    .filter((name) => (findDayMs(name) ?? Infinity) + dayMs <= atMs)
    .sort()
    .map((name) => `${parent}/${name}`);
}

async function removePastMinutes(box: Box, nowMs: number): Promise<void> {
  const parents = [box.layout.delayed];
  for (let priority = 0; priority <= priorityMax; priority++) parents.push(box.layout.incoming(priority));
  for (const parent of parents)
    for (const minute of await box.names(parent))
      if ((findMinuteMs(minute) ?? Infinity) + keepMs < nowMs) await removeIfEmpty(box, `${parent}/${minute}`);
}

/** `rmdir` alone tells that nothing is left: what arrives meanwhile keeps its directory, or makes it again. */
async function removeIfEmpty(box: Box, directory: string): Promise<void> {
  try {
    await box.disk.rmdir(directory);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY", "ESTALE")) throw error;
  }
}

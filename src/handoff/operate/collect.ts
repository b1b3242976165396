// Collection: removes tickets that were finished long ago, and what crashes left. One rename moves
// the ticket to the trash; of a collection and a replay, one wins it. Then its payload, notes and
// key are removed, and the trash entry last.
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

/**
 * The directory of a day is kept this long after its end: a machine whose clock is behind may still
 * use it.
 */
const keepMs = 120_000;

/**
 * Collects whole days: the directory tells only on which day its tickets were finished. Any number
 * of processes may run it at once.
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

/** Returns the directories of days that ended before `atMs`, oldest first. */
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

/** Only `rmdir` proves that nothing is left. A ticket that arrives meanwhile keeps or recreates its directory. */
async function removeIfEmpty(box: Box, directory: string): Promise<void> {
  try {
    await box.disk.rmdir(directory);
  } catch (error) {
    // ENOTDIR: another program made a file of this name.
    if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY", "ESTALE", "ENOTDIR")) throw error;
  }
}

// Entering: a ticket that this process has in hand becomes one that can be claimed, at once, when it is
// due, or in the order of its lane. One rename to a name that no other process makes, then a sync.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import { moveOnce, outcomeUnknown } from "../../durable/publish/publish.ts";
import type { Box } from "../box/box.ts";
import { laneOf, minuteName } from "../box/layout.ts";
import { formatTicketName, unrankedOf, type TicketName } from "../model/ticket-name.ts";

/** A directory that is removed each time before the ticket arrives is no accident any more. */
const triesMax = 10;

export interface Destination {
  readonly priority: number;
  readonly group?: string;
  readonly notBefore?: Date;
}

/**
 * Moves `from` to where consumers look for it. A ticket of a group takes its place in the order of its lane,
 * unless its name says that it has one. False when `from` is gone: other processes took this one for dead.
 * OUTCOME_UNKNOWN when the ticket is there and could not be made durable; any other failure left it where it was.
 */
export async function enter(
  box: Box,
  from: string,
  name: TicketName,
  { priority, group, notBefore }: Destination,
): Promise<boolean> {
  const nowMs = await box.nowMs();
  const dueMs = notBefore?.getTime() ?? 0;
  if (group !== undefined && (name.rank !== undefined || dueMs <= nowMs))
    return await enterLane(box, from, name, group);
  const isDelayed = dueMs > nowMs;
  const parent = await box.ensure(isDelayed ? box.layout.delayed : box.layout.incoming(priority));
  const entered = isDelayed ? { ...unrankedOf(name), rank: dueMs } : unrankedOf(name);
  const minute = minuteName(isDelayed ? dueMs : nowMs);
  return await moveToMinute(box, from, `${parent}/${minute}/${formatTicketName(entered)}`);
}

async function enterLane(box: Box, from: string, name: TicketName, group: string): Promise<boolean> {
  const lane = laneOf(group);
  const directory = await box.ensure(`${box.layout.lane(lane)}/incoming`);
  const rank = name.rank ?? (await box.nextInLane(lane));
  const to = `${directory}/${formatTicketName({ ...name, rank })}`;
  if (!(await moveOnce(box.disk, from, to))) return false;
  await syncEntered(box, to, directory);
  return true;
}

/** Makes durable what another process has entered into the lane of the group; false for a ticket that goes elsewhere. */
export async function syncLane(box: Box, { group, notBefore }: Destination): Promise<boolean> {
  if (group === undefined || notBefore !== undefined) return false;
  const directory = `${box.layout.lane(laneOf(group))}/incoming`;
  await syncEntered(box, directory, directory);
  return true;
}

/**
 * Moves `from` into the directory of a minute. That directory is removed when its minute is past and it is
 * empty, so it may go at any moment before the ticket is in it.
 */
async function moveToMinute(box: Box, from: string, to: string): Promise<boolean> {
  const directory = parentOf(to);
  for (let tries = 1; ; tries++) {
    try {
      if (!(await moveOnce(box.disk, from, to))) return false;
      break;
    } catch (error) {
      if (!hasErrno(error, "ENOENT") || tries >= triesMax) throw error;
      await ensureDirectory(box.disk, directory);
    }
  }
  // Both, each time: the directory may have been removed and made again by a process that has not synced it.
  await syncEntered(box, to, directory, parentOf(directory));
  return true;
}

/** A consumer may have claimed it by now, so it cannot be taken back: a failed sync leaves the outcome unknown. */
async function syncEntered(box: Box, to: string, ...directories: readonly string[]): Promise<void> {
  const syncs = await Promise.allSettled(directories.map((directory) => box.sync(directory)));
  for (const sync of syncs) {
    if (sync.status === "fulfilled") continue;
    // The minute is past, and a consumer has taken the ticket and removed the directory: the sync of the one above
    // makes that durable, and with it what came before.
    if (directories.length > 1 && hasErrno(sync.reason, "ENOENT")) continue;
    throw isHoldfastError(sync.reason, "UNSUPPORTED_DISK") ? sync.reason : outcomeUnknown(to, sync.reason);
  }
}

// Entering: a ticket that this process has in hand becomes one that can be claimed, at once, when it is
// due, or in the order of its lane. One rename to a name that no other process makes, then a sync.
import { hasErrno } from "../../ports/disk-error.ts";
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
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
  if (!(await moveOnce(box.disk, from, `${directory}/${formatTicketName({ ...name, rank })}`))) return false;
  await box.sync(directory);
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
  await box.sync(directory, parentOf(directory));
  return true;
}

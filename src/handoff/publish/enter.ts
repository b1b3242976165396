// Entering: makes a ticket that this process holds claimable: at once, when it is due, or in the
// order of its lane. The steps are one rename, to a name that no other process uses, and a sync.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import { moveOnce, outcomeUnknown } from "../../durable/publish/publish.ts";
import type { Box } from "../box/box.ts";
import { laneOf, minuteName } from "../box/layout.ts";
import { formatTicketName, inLaneOf, unrankedOf, type TicketName } from "../model/ticket-name.ts";

/** How often a move is tried again because another process removed the target directory. */
const triesMax = 10;

export interface TicketDestination {
  readonly priority: number;
  readonly group?: string | undefined;
  readonly notBefore?: Date | undefined;
}

/**
 * Moves `from` into the queue. A ticket of a group takes the next position in its lane, unless its
 * name already has one: then it keeps it, and its lane waits with it until `notBefore`. Returns
 * false if `from` is gone: other processes judged this one dead. Throws OUTCOME_UNKNOWN if the
 * ticket was entered but could not be made durable; any other failure left it where it was.
 */
export async function enter(
  box: Box,
  from: string,
  name: TicketName,
  { priority, group, notBefore }: TicketDestination,
): Promise<boolean> {
  const nowMs = await box.nowMs();
  const dueMs = notBefore?.getTime() ?? 0;
  const isDelayed = dueMs > nowMs;
  if (group !== undefined && (name.rank !== undefined || !isDelayed))
    return await enterLane(box, from, name, group, isDelayed ? dueMs : undefined);
  const parent = await box.ensure(isDelayed ? box.layout.delayed : box.layout.incoming(priority));
  const entered = isDelayed ? { ...unrankedOf(name), rank: dueMs } : unrankedOf(name);
  const minute = minuteName(isDelayed ? dueMs : nowMs);
  return await moveToMinute(box, from, `${parent}/${minute}/${formatTicketName(entered)}`);
}

async function enterLane(
  box: Box,
  from: string,
  name: TicketName,
  group: string,
  dueMs: number | undefined,
): Promise<boolean> {
  const lane = laneOf(group);
  const directory = await box.ensure(`${box.layout.lane(lane)}/incoming`);
  const position = name.rank ?? (await box.nextInLane(lane));
  const to = `${directory}/${formatTicketName(inLaneOf(name, position, dueMs))}`;
  if (!(await moveOnce(box.disk, from, to))) return false;
  await syncEntered(to, () => box.sync(directory));
  return true;
}

/**
 * Makes the names in a lane durable: another process may have entered this ticket without a sync.
 * Returns false for a ticket without a group.
 */
export async function syncLane(box: Box, { group, notBefore }: TicketDestination): Promise<boolean> {
  if (group === undefined || notBefore !== undefined) return false;
  const directory = `${box.layout.lane(laneOf(group))}/incoming`;
  await syncEntered(directory, () => box.sync(directory));
  return true;
}

/**
 * Moves `from` into the directory of a minute. Consumers remove that directory when its minute is
 * past and it is empty, so it may disappear at any moment before the ticket is in it.
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
  await syncEntered(to, () => box.syncNamed(directory));
  return true;
}

/**
 * A consumer may have claimed the ticket by now, so it cannot be withdrawn: after a failed sync,
 * the outcome is unknown.
 */
async function syncEntered(to: string, sync: () => Promise<void>): Promise<void> {
  try {
    await sync();
  } catch (error) {
    throw isHoldfastError(error, "UNSUPPORTED_DISK") ? error : outcomeUnknown(to, error);
  }
}

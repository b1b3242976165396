// Checks the small records of a box that processing does not need: notes on attempts, the pause,
// the order of lanes.
import { findRecord, getRecord } from "../../../durable/publish/record-file.ts";
import { messageOf } from "../../../errors.ts";
import type { RecordKind } from "../../../format/record.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import { laneOf } from "../../box/layout.ts";
import { usedLanes } from "../../consume/lanes.ts";
import { progressKind } from "../../consume/progress.ts";
import { noteKind } from "../../consume/settle.ts";
import { ticketKind } from "../../model/manifest.ts";
import { undefinedIfDamaged } from "../find.ts";
import { pauseKind } from "../pause.ts";
import { ticketsIn } from "../tickets.ts";
import type { Inspection, Repair } from "./inspection.ts";

const notePattern = /^([0-9a-z]{36})-([0-9]{1,9}|progress)\.json$/;

/** If a note is unreadable, the history of its ticket lacks one attempt. */
export async function checkNotes(inspection: Inspection): Promise<void> {
  const { box } = inspection;
  for (const shard of await box.names(box.layout.notes))
    for (const name of await box.names(`${box.layout.notes}/${shard}`)) {
      inspection.signal.throwIfAborted();
      const path = `${box.layout.notes}/${shard}/${name}`;
      const [, id = "", what = ""] = notePattern.exec(name) ?? [];
      if (box.layout.note(id, what) !== path) inspection.stray(path);
      else if (what === "progress") await checkRecord(inspection, progressKind, path, inspection.aside(path));
      else await checkRecord(inspection, noteKind, path, inspection.aside(path));
    }
}

/**
 * An unreadable pause record still pauses the box. A repair does not remove it: only a person knows
 * whether the pause may end.
 */
export async function checkPause(inspection: Inspection): Promise<void> {
  const { disk, layout } = inspection.box;
  try {
    await getRecord(disk, pauseKind, layout.pauseRecord);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE"))
      inspection.damage(layout.pauseRecord, messageOf(error), undefined, "It pauses the box. Resume or pause it.");
  }
}

async function checkRecord(
  inspection: Inspection,
  kind: RecordKind<unknown>,
  path: string,
  repair: Repair,
): Promise<void> {
  try {
    await getRecord(inspection.box.disk, kind, path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE")) inspection.unreadable(path, error, repair);
  }
}

/**
 * The order of a lane assigns positions to published tickets; a ticket that has one is processed
 * without it. A repair resets the order only if no ticket has a position: new positions would sort
 * before it.
 */
export async function checkLanes(inspection: Inspection): Promise<void> {
  const { box } = inspection;
  for (const lane of await usedLanes(box)) {
    const path = `${box.layout.lane(lane)}/order`;
    if ((await box.names(path)).length === 0) continue;
    try {
      await box.readLane(lane);
    } catch (error) {
      const isFree = !(await hasTickets(inspection, lane));
      inspection.unreadable(path, error, isFree ? inspection.aside(path) : undefined);
    }
  }
}

async function hasTickets({ box }: Inspection, lane: number): Promise<boolean> {
  if ((await box.names(`${box.layout.lane(lane)}/incoming`)).length > 0) return true;
  for await (const { path } of ticketsIn(box, "processing")) {
    const ticket = await undefinedIfDamaged(findRecord(box.disk, ticketKind, path));
    // An unreadable ticket may belong to this lane.
    if (ticket === undefined || (ticket.manifest.group !== undefined && laneOf(ticket.manifest.group) === lane))
      return true;
  }
  return false;
}

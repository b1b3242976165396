// Adopts a part that was created alone: its directory becomes a store, and the part moves into it.
//
// The part moves as a whole, by two renames: out of the way, and into the store that is created
// meanwhile. A crash leaves it complete under one of its three names, and the next call continues
// from there.
import { Ground } from "../durable/liveness/ground.ts";
import { GroundLayout } from "../durable/liveness/holder-record.ts";
import { ensureDirectory, isThere, parentOf, syncNames } from "../durable/publish/directory.ts";
import { moveOnce } from "../durable/publish/publish.ts";
import { findLonePart, type LonePart } from "../durable/store/lone-part.ts";
import { StoreLayout } from "../durable/store/store-record.ts";
import { holdfastError } from "../errors.ts";
import { changeTree } from "../locks/naming/lock-names.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";
import type { Ports } from "../ports/ports.ts";
import { mustBeIdle } from "./upgrade/idle.ts";

/** A part that was opened alone and now belongs to a store. */
export interface AdoptedPart {
  /** The folder of the store that contains it now. */
  readonly room: "events" | "handoff" | "objects" | "files";
  /** Its directory now. */
  readonly directory: string;
}

export interface Adoption {
  readonly ports: Ports;
  /** The directory of the part, and later of the store. Symbolic links are resolved. */
  readonly directory: string;
  /** Creates the store there. */
  readonly makeStore: () => Promise<void>;
}

/**
 * Throws NOT_A_STORE if there is no part to adopt, RESOURCE_BUSY while another process has it open,
 * FILE_EXISTS if the store already has a part of that name, INVALID_PATH if the directory cannot be
 * renamed.
 */
export async function adoptPart(adoption: Adoption, name: string): Promise<AdoptedPart> {
  const { ports, directory } = adoption;
  const { disk } = ports;
  const away = awayOf(directory);
  if (!(await isThere(disk, away))) await takeAway(ports, directory, away);
  const part = await findLonePart(disk, away);
  const layout = new StoreLayout(directory);
  await ensureDirectory(disk, directory);
  // Move the ground before the store is created, which would otherwise create its own.
  if (part?.room === "files") await moveGround(ports, away, layout);
  // Create the store before the part is moved back: from here on no process can create another lone part in this
  // directory.
  await adoption.makeStore();
  // The part has no trace here: its ground was already moved to the store.
  const room = part?.room ?? "files";
  const target = room === "files" ? layout.files : room === "objects" ? layout.objects : layout.part(room, name);
  if (await isOccupied(disk, target)) throw occupied(target, away);
  await ensureDirectory(disk, parentOf(target));
  await move(disk, away, target);
  return { room, directory: target };
}

/** True if an adoption was started and not completed. */
export async function isBeingAdopted(disk: Disk, directory: string): Promise<boolean> {
  return await isThere(disk, awayOf(directory));
}

function awayOf(directory: string): string {
  return `${directory}.adopting`;
}

async function takeAway(ports: Ports, directory: string, away: string): Promise<void> {
  const part = await findLonePart(ports.disk, directory);
  if (part === undefined)
    throw holdfastError("NOT_A_STORE", `There is no part to adopt in ${directory}.`, { path: directory });
  await mustHaveEnded(ports, directory, part);
  try {
    await move(ports.disk, directory, away);
  } catch (error) {
    if (!hasErrno(error, "EBUSY", "EXDEV", "EPERM", "EACCES")) throw error;
    const message = `${directory} cannot be renamed: it is a mount point, or a program is using it, or this user may not write to the directory above it. Nothing was changed. To adopt it anyway, create a store elsewhere and move ${directory} into its folder ${part.room}.`;
    throw holdfastError("INVALID_PATH", message, { path: directory }, error);
  }
}

/** Throws if another process has the part open, because the adoption changes paths. */
async function mustHaveEnded(ports: Ports, directory: string, { what }: LonePart): Promise<void> {
  await using ground = await Ground.open(ports, `${directory}/.holdfast`);
  await mustBeIdle(ground, directory, what, "adopt");
}

/** Moves the locks of a tree, its change log, and all data derived from it. */
async function moveGround(ports: Ports, away: string, layout: StoreLayout): Promise<void> {
  const { disk, random } = ports;
  const from = `${away}/.holdfast`;
  // No process finds this ground any more, so nothing sweeps it.
  const temp = new GroundLayout(from).temps;
  await ensureDirectory(disk, temp);
  await changeTree({ disk, random, directory: async () => temp }, from, "../files");
  await move(disk, from, layout.ground);
}

async function isOccupied(disk: Disk, target: string): Promise<boolean> {
  return (await isThere(disk, target)) && (await disk.listSome(target, 1)).length > 0;
}

/** Makes the new name durable before the old one disappears. */
async function move(disk: Disk, from: string, to: string): Promise<void> {
  if (!(await moveOnce(disk, from, to))) {
    const message = `Another process moved ${from} meanwhile: it is adopting the same part. Try again after it has ended.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: from, blockedBy: [], worthWaiting: true });
  }
  await syncNames(disk, parentOf(to));
  await syncNames(disk, parentOf(from));
}

function occupied(target: string, away: string): Error {
  const message = `${target} exists, so the part in ${away} was not moved there. Choose another name.`;
  return holdfastError("FILE_EXISTS", message, { path: target });
}

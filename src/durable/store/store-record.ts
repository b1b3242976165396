// The record that makes a directory a store, and the names of what a store consists of.
import { isHoldfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { fileNameOf } from "../../format/name.ts";
import type { RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { parentOf } from "../publish/directory.ts";
import { decideRecord, findDecision, findRecord } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";

export interface StoreRecord {
  readonly id: string;
}

const storeKind: RecordKind<StoreRecord> = {
  kind: "store",
  decode: (value) => ({ id: textOf(objectOf(value).id) }),
};

/** The rooms of a store whose parts have names. */
export type PartRoom = "events" | "handoff" | "objects";

/** The names in a store. */
export class StoreLayout {
  readonly directory: string;
  readonly record: string;
  /** One for all parts. */
  readonly ground: string;
  /** The tree that path locks are on. */
  readonly files: string;
  readonly objects: string;

  constructor(directory: string) {
    this.directory = directory;
    this.record = `${directory}/holdfast.json`;
    this.ground = `${directory}/ground`;
    this.files = `${directory}/files`;
    this.objects = `${directory}/objects`;
  }

  /** All folders that a store keeps for itself. */
  get rooms(): readonly string[] {
    return ["events", "files", "handoff", "objects"].map((room) => `${this.directory}/${room}`);
  }

  /** INVALID_NAME. */
  part(room: PartRoom, name: string): string {
    return `${this.directory}/${room}/${fileNameOf(name)}`;
  }
}

/** Undefined where no store was made. NEWER_FORMAT, CORRUPT. */
export async function findStore(disk: Disk, directory: string): Promise<StoreRecord | undefined> {
  return await findDecision(disk, storeKind, new StoreLayout(directory).record);
}

/** The record that holds from now on: `proposal`, or what another process has put there before. */
export async function decideStore(staging: Staging, directory: string, proposal: StoreRecord): Promise<StoreRecord> {
  return await decideRecord(staging, storeKind, new StoreLayout(directory).record, proposal);
}

/**
 * Whether `directory` is a store, as its file system says now. An old answer would let a process keep
 * locks of its own beside those of the store. A store that has lost its record is one by its ground
 * and its rooms: `openStore` makes the record anew. NEWER_FORMAT.
 */
export async function isStore(disk: Disk, directory: string): Promise<boolean> {
  const { record, ground, rooms } = new StoreLayout(directory);
  if (await isThere(disk, record)) {
    await mustKnowFormat(disk, record);
    return true;
  }
  if (!(await isThere(disk, `${ground}/ground.json`))) return false;
  for (const room of rooms) if (await isThere(disk, room)) return true;
  return false;
}

/** The nearest directory above `path` that is a store; undefined when there is none. */
export async function findStoreAbove(disk: Disk, path: string): Promise<StoreLayout | undefined> {
  for (let at = path; at !== "/" && at.includes("/");) {
    at = parentOf(at);
    if (at !== "/" && (await isStore(disk, at))) return new StoreLayout(at);
  }
  return undefined;
}

/** A damaged record is told by those who open the store. */
async function mustKnowFormat(disk: Disk, record: string): Promise<void> {
  try {
    await findRecord(disk, storeKind, record);
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
  }
}

/** Whether anything has this name now. */
export async function isThere(disk: Disk, path: string): Promise<boolean> {
  try {
    await disk.look(path);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

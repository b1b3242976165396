// The record that makes a directory a store, and the file names of a store.
import { isHoldfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { fileNameOf } from "../../format/name.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Disk } from "../../ports/disk.ts";
import { isThere, isTop, parentOf } from "../publish/directory.ts";
import { decideRecord, findDecision, findRecord } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";

export interface StoreRecord {
  readonly id: string;
}

const storeKind: RecordKind<StoreRecord> = {
  kind: "store",
  decode: (value) => ({ id: textOf(objectOf(value).id) }),
};

/** The folders of a store whose parts have names. */
export type PartFolder = "events" | "handoff" | "objects";

/** The file names of a store. */
export class StoreLayout {
  readonly directory: string;
  readonly record: string;
  /** The one ground of all parts. */
  readonly ground: string;
  /** The tree that path locks apply to. */
  readonly files: string;
  readonly objects: string;

  constructor(directory: string) {
    this.directory = directory;
    this.record = `${directory}/holdfast.json`;
    this.ground = `${directory}/ground`;
    this.files = `${directory}/files`;
    this.objects = `${directory}/objects`;
  }

  /** All folders that a store reserves for itself. */
  get rooms(): readonly string[] {
    return ["events", "files", "handoff", "objects"].map((room) => `${this.directory}/${room}`);
  }

  /** Throws INVALID_NAME. */
  part(room: PartFolder, name: string): string {
    return `${this.directory}/${room}/${fileNameOf(name)}`;
  }
}

/** Undefined if there is no store. Throws NEWER_FORMAT, CORRUPT. */
export async function findStore(disk: Disk, directory: string): Promise<StoreRecord | undefined> {
  return await findDecision(disk, storeKind, new StoreLayout(directory).record);
}

/** Returns the record that holds from now on: `proposal`, or the record that another process put there first. */
export async function decideStore(staging: Staging, directory: string, proposal: StoreRecord): Promise<StoreRecord> {
  return await decideRecord(staging, storeKind, new StoreLayout(directory).record, proposal);
}

/**
 * True if `directory` is a store now, according to its file system. A stale answer would let a
 * process keep its own locks beside those of the store. A store that lost its record is recognized
 * by its ground and its folders: `openStore` recreates the record. Throws NEWER_FORMAT.
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

/** Returns the nearest store above `path`; undefined if there is none. */
export async function findStoreAbove(disk: Disk, path: string): Promise<StoreLayout | undefined> {
  // The root of a drive or of a share may be a store.
  for (let at = path; !isTop(disk, at);) {
    at = parentOf(at);
    if (at !== "/" && (await isStore(disk, at))) return new StoreLayout(at);
  }
  return undefined;
}

/** Ignores a damaged record: the process that opens the store reports it. */
async function mustKnowFormat(disk: Disk, record: string): Promise<void> {
  try {
    await findRecord(disk, storeKind, record);
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
  }
}

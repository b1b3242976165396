// The record that makes a directory a store, and the names of what a store consists of.
import { objectOf, textOf } from "../../format/decoding.ts";
import { fileNameOf } from "../../format/name.ts";
import type { RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { decideRecord, findDecision } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";

export interface StoreRecord {
  readonly id: string;
}

const storeKind: RecordKind<StoreRecord> = {
  kind: "store",
  decode: (value) => ({ id: textOf(objectOf(value).id) }),
};

/** The rooms of a store whose parts have names. */
export type PartRoom = "events" | "handoff";

/** The names in a store. */
export class StoreLayout {
  readonly directory: string;
  readonly record: string;
  /** One for all parts. */
  readonly ground: string;
  /** The tree that path locks are on. */
  readonly files: string;

  constructor(directory: string) {
    this.directory = directory;
    this.record = `${directory}/holdfast.json`;
    this.ground = `${directory}/ground`;
    this.files = `${directory}/files`;
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
 * locks of its own beside those of the store.
 */
export async function isStore(disk: Disk, directory: string): Promise<boolean> {
  return await isThere(disk, new StoreLayout(directory).record);
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

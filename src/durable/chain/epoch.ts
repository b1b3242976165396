// One epoch of a rolling chain: the record that names its directory for ever, and the slots and the
// `open` file in that directory.
import { countOf, flagOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { findSlotNumber, slotName } from "../../format/name.ts";
import { recordBytesMax, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { ChainEntry } from "./chain.ts";
import { retryOutage } from "../publish/retry-outage.ts";
import { removeDirectory, syncNames } from "../publish/directory.ts";
import { createUniqueFile, makeUniqueDirectory } from "../publish/unique-file.ts";
import { getRecord } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";

/** The directory of an epoch: a slot name, and 128 random bits. */
const directoryPattern = /^[0-9]{10}-[0-9a-hjkmnp-tv-z]{26}$/;

export interface Epoch<T> {
  /** Its random part is used once, so a name in it was never used before. */
  readonly directory: string;
  readonly bootId: string;
  /** Whether its slots are synced; if not, they count only as long as this boot lasts. */
  readonly synced: boolean;
  /** The number of slot k is from + k. */
  readonly from: number;
  readonly slots: number;
  /** The state before its first slot. */
  readonly base: T;
}

/** A whole state, so that a torn or missing one hurts nothing but itself. */
export interface Slot<T> {
  readonly id: string;
  readonly number: number;
  readonly state: T;
}

/**
 * Less than a record may have: the last state of an epoch is the base of the next one, whose record
 * says more about itself than a slot.
 */
export const slotBytesMax: number = recordBytesMax - 4096;

/** Where a process believes the end of the chain to be. */
export interface View<T> {
  readonly epoch: ChainEntry<Epoch<T>>;
  /** 0: nothing in this epoch yet. */
  readonly slot: number;
  readonly state: T;
}

/**
 * Makes the directory of epoch `number` with its `open` file, durable, before any other process can
 * know its name. Undefined when it was collected meanwhile: then others have named that epoch and
 * two more.
 */
export async function makeEpochDirectory(
  { disk, random }: Staging,
  parent: string,
  number: number,
): Promise<string | undefined> {
  const name = `${slotName(number)}-${randomName(random.bytes(16))}`;
  const path = `${parent}/${name}`;
  await makeUniqueDirectory(disk, path);
  try {
    await createUniqueFile(disk, `${path}/open`, new Uint8Array(), { sync: true });
    // An epoch that is named but lost its directory or its `open` in a power cut would stop every
    // process.
    await syncNames(disk, path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
    throw error;
  }
  await syncNames(disk, parent);
  return name;
}

/**
 * From here on no link in this directory is believed, also after a power cut. False when it is gone
 * altogether. ESTALE may mean that `open` stands.
 */
export async function sealEpochDirectory(disk: Disk, directory: string): Promise<boolean> {
  try {
    await retryOutage(disk, directory, () => disk.unlink(`${directory}/open`)).catch((error: unknown) => {
      if (!hasErrno(error, "ENOENT")) throw error;
    });
    await syncNames(disk, directory);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return false;
    throw error;
  }
}

/**
 * Deletes an epoch in which no process can win any more. False when another collector has deleted
 * it, or when something in it cannot be removed now.
 */
export async function removeEpochDirectory(disk: Disk, directory: string): Promise<boolean> {
  try {
    // First of all, and durable before anything else goes: slots that are deleted under an `open`
    // that stands could be won again.
    if (!(await sealEpochDirectory(disk, directory))) return false;
  } catch (error) {
    // ENOTDIR: a foreign file with such a name.
    if (hasErrno(error, "ESTALE", "ENOTDIR")) return false;
    throw error;
  }
  return await removeDirectory(disk, directory);
}

/** The number of the epoch that a directory was made for; undefined for anything else. */
export function findEpochOfDirectory(name: string): number | undefined {
  return directoryPattern.test(name) ? findSlotNumber(name.slice(0, name.indexOf("-"))) : undefined;
}

/** Undefined when there is none, or when the epoch is gone. */
export async function findSlot<T>(disk: Disk, kind: RecordKind<Slot<T>>, path: string): Promise<Slot<T> | undefined> {
  try {
    return await getRecord(disk, kind, path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
    throw error;
  }
}

/** The highest slot in a directory, 0 when there is none; undefined when the epoch is gone. */
export async function findHighestSlot(disk: Disk, directory: string): Promise<number | undefined> {
  try {
    let highest = 0;
    // One by one: a call cannot have a hundred thousand arguments.
    for (const name of await disk.list(directory)) highest = Math.max(highest, findSlotNumber(name) ?? 0);
    return highest;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
    throw error;
  }
}

export function epochKind<T>(kind: RecordKind<T>): RecordKind<Epoch<T>> {
  return {
    kind: `${kind.kind} epoch`,
    decode: (value) => {
      const { directory, bootId, synced, from, slots, base } = objectOf(value);
      return {
        directory: epochDirectoryOf(directory),
        bootId: textOf(bootId),
        synced: flagOf(synced),
        from: countOf(from),
        slots: countOf(slots),
        base: kind.decode(base),
      };
    },
  };
}

/** Only a name as `makeEpochDirectory` makes it: it becomes part of a path. */
function epochDirectoryOf(value: unknown): string {
  const name = textOf(value);
  if (!directoryPattern.test(name)) throw new TypeError("not the name of an epoch");
  return name;
}

export function slotKind<T>(kind: RecordKind<T>): RecordKind<Slot<T>> {
  return {
    kind: `${kind.kind} slot`,
    decode: (value) => {
      const { id, number, state } = objectOf(value);
      return { id: textOf(id), number: countOf(number), state: kind.decode(state) };
    },
  };
}

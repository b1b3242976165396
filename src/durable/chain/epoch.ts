// One epoch of a rolling chain: the permanent record that names its directory, and the slots and
// the `open` file in that directory.
import { countOf, flagOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { findSlotNumber, slotName } from "../../format/name.ts";
import { recordBytesMax, type RecordKind } from "../../format/record.ts";
import { formatVersion } from "../../format/version.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { ChainEntry } from "./chain.ts";
import { retryOutage } from "../publish/retry-outage.ts";
import { removeDirectory, syncNames } from "../publish/directory.ts";
import { createUniqueFile, makeUniqueDirectory } from "../publish/unique-file.ts";
import { getRecord } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";

/** The directory name of an epoch: a slot name and 128 random bits. */
const directoryPattern = /^[0-9]{10}-[0-9a-hjkmnp-tv-z]{26}$/;

export interface Epoch<T> {
  /** The random part is used once, so no name in this directory was ever used before. */
  readonly directory: string;
  readonly bootId: string;
  /** True if its slots are synced. Unsynced slots count only until the machine restarts. */
  readonly synced: boolean;
  /** The number of slot k is from + k. */
  readonly from: number;
  readonly slots: number;
  /** The state before its first slot. */
  readonly base: T;
  /** True if its slots may be deltas. Older releases refuse such an epoch. */
  readonly deltas?: true;
}

/** A slot holds a whole state, so that a torn or missing slot affects only itself, or a delta (`state-delta.ts`). */
export type Slot<T> = WholeSlot<T> | DeltaSlot;

export interface WholeSlot<T> {
  readonly id: string;
  readonly number: number;
  readonly state: T;
}

export interface DeltaSlot {
  readonly id: string;
  readonly number: number;
  /** The last earlier slot with a whole state; 0 for the base of the epoch. */
  readonly whole: number;
  /** Upper bound of the state's size as JSON. */
  readonly bytes: number;
  readonly delta: unknown;
}

/** The format of epochs and slots with deltas. */
export const deltaFormat = 2;

/**
 * Less than a record may have: the last state of an epoch becomes the base of the next one, and an
 * epoch record has more fields than a slot.
 */
export const slotBytesMax: number = recordBytesMax - 4096;

/** The end of the chain, as a process believes it to be. */
export interface View<T> {
  readonly epoch: ChainEntry<Epoch<T>>;
  /** The number of the last slot; 0 if the epoch is empty. */
  readonly slot: number;
  readonly state: T;
  /** The last slot with a whole state, up to `slot`; 0 for the base of the epoch. */
  readonly whole: number;
  /** Upper bound of the state's size as JSON, if known. */
  readonly bytes?: number;
}

export function startOf<T>(epoch: View<T>["epoch"]): View<T> {
  return { epoch, slot: 0, state: epoch.body.base, whole: 0 };
}

/**
 * Creates the directory of epoch `number` with its `open` file and syncs both, before any other
 * process can know its name. Undefined if it was collected meanwhile: then others have named that
 * epoch and two more.
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
 * Removes `open` and syncs: from here on no link in this directory counts, even after a power cut.
 * False if the directory is gone. After ESTALE, `open` may still exist.
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
 * Deletes an epoch in which no process can win any more. False if another collector deleted it or
 * is deleting it, or if something in it cannot be removed now.
 */
export async function removeEpochDirectory(disk: Disk, directory: string): Promise<boolean> {
  try {
    // `open` must be durably gone before any slot is deleted: under an existing `open`, a deleted
    // slot could be won again.
    if (!(await sealEpochDirectory(disk, directory))) return false;
  } catch (error) {
    // ENOTDIR: a foreign file has such a name.
    if (hasErrno(error, "ESTALE", "ENOTDIR")) return false;
    throw error;
  }
  // Two collectors would conflict at every slot, so this one yields. If the other dies, the next
  // collection finishes.
  return await removeDirectory(disk, directory, { yields: true });
}

/** Returns the epoch number in a directory's name; undefined for any other name. */
export function findEpochOfDirectory(name: string): number | undefined {
  return directoryPattern.test(name) ? findSlotNumber(name.slice(0, name.indexOf("-"))) : undefined;
}

/** Undefined if there is no such slot, or if the epoch is gone. */
export async function findSlot<T>(disk: Disk, kind: RecordKind<Slot<T>>, path: string): Promise<Slot<T> | undefined> {
  try {
    return await getRecord(disk, kind, path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
    throw error;
  }
}

/** Returns the highest slot in a directory, 0 if there is none; undefined if the epoch is gone. */
export async function findHighestSlot(disk: Disk, directory: string): Promise<number | undefined> {
  try {
    let highest = 0;
    // A loop, not `Math.max(...names)`: a call cannot take a hundred thousand arguments.
    for (const name of await disk.list(directory)) highest = Math.max(highest, findSlotNumber(name) ?? 0);
    return highest;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
    throw error;
  }
}

export function epochKind<T>(
  kind: RecordKind<T>,
  { hasDeltas }: { readonly hasDeltas: boolean },
): RecordKind<Epoch<T>> {
  return {
    kind: `${kind.kind} epoch`,
    newestFormat: hasDeltas ? deltaFormat : formatVersion,
    formatOf: ({ deltas }) => (deltas === true ? deltaFormat : formatVersion),
    decode: (value) => {
      const { directory, bootId, synced, from, slots, base, deltas } = objectOf(value);
      return {
        directory: epochDirectoryOf(directory),
        bootId: textOf(bootId),
        synced: flagOf(synced),
        from: countOf(from),
        slots: countOf(slots),
        base: kind.decode(base),
        ...(deltas === true ? { deltas } : {}),
      };
    },
  };
}

/** Accepts only names that `makeEpochDirectory` makes: the name becomes part of a path. */
function epochDirectoryOf(value: unknown): string {
  const name = textOf(value);
  if (!directoryPattern.test(name)) throw new TypeError("not the name of an epoch");
  return name;
}

export function slotKind<T>(kind: RecordKind<T>, { hasDeltas }: { readonly hasDeltas: boolean }): RecordKind<Slot<T>> {
  return {
    kind: `${kind.kind} slot`,
    newestFormat: hasDeltas ? deltaFormat : formatVersion,
    formatOf: (slot) => ("state" in slot ? formatVersion : deltaFormat),
    decode: (value) => {
      const { id, number, state, whole, bytes, delta } = objectOf(value);
      const made = { id: textOf(id), number: countOf(number) };
      if (delta === undefined) return { ...made, state: kind.decode(state) };
      return { ...made, whole: countOf(whole), bytes: countOf(bytes), delta: objectOf(delta) };
    },
  };
}

// The registry of on-disk formats: for each thing with its own format, how to find its current
// format, the newest one that this release writes, and the step that upgrades it.
//
// Every release reads most formats, and they need no step. Only a step creates a format that older
// releases refuse: a process of a new release must not lock out the others.
import { listIfThere } from "../../durable/publish/directory.ts";
import { deltaFormat } from "../../durable/chain/epoch.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { isHoldfastError } from "../../errors.ts";
import { findSlotNumber } from "../../format/name.ts";
import { readEnvelope, recordBytesMax } from "../../format/record.ts";
import { formatVersion } from "../../format/version.ts";
import { LockTable } from "../../locks/table/lock-table.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";

/**
 * How one thing on the disk is versioned. `directory` is that of the store, the part or the ground
 * to which it belongs.
 */
export interface Format {
  /** For people: "lock table". */
  readonly what: string;
  /** The newest format that this release writes. */
  readonly newest: number;
  /** Returns the path of the record that states the format; undefined if there is none. */
  readonly findRecord: (disk: Disk, directory: string) => Promise<string | undefined>;
  /** Absent as long as all releases can read the newest format. */
  readonly step?: FormatStep | undefined;
}

export interface FormatStep {
  /** Describes the change for people. */
  readonly change: string;
  /**
   * Runs while only this process has joined the ground. Crash-safe and repeatable: after a crash
   * one of the two formats is complete.
   */
  readonly take: (ground: Ground, directory: string) => Promise<void>;
}

/** A format as found on the disk. */
export interface FoundFormat {
  readonly path: string;
  /** Undefined if the record is damaged. */
  readonly found?: number | undefined;
  /** The version of Holdfast that wrote the record. */
  readonly writtenBy?: string | undefined;
  /** Describes the damage of a record. */
  readonly damage?: string | undefined;
}

/** The format of a thing that one permanent record identifies. */
export function recordFormat(what: string, name: string, newest: number = formatVersion): Format {
  return { what, newest, findRecord: async (_disk, directory) => `${directory}/${name}` };
}

/** The formats of every ground. */
export const groundFormats: readonly Format[] = [
  recordFormat("ground", "ground.json"),
  recordFormat("path locks", "names.json"),
  {
    what: "lock table",
    newest: deltaFormat,
    findRecord: async (disk, directory) => await findNewestSlot(disk, `${directory}/table/epochs`),
    step: {
      change: "a slot of a large table says only what changed",
      take: async (ground) => await (await LockTable.open(ground)).upgrade(),
    },
  },
];

/**
 * Returns undefined if there is no such record. A newer format is no error here: the caller only wants to know the
 * format.
 */
export async function findFormat(disk: Disk, format: Format, directory: string): Promise<FoundFormat | undefined> {
  const path = await format.findRecord(disk, directory);
  if (path === undefined) return undefined;
  try {
    const envelope = readEnvelope({ kind: format.what }, await disk.readFile(path, recordBytesMax), path);
    return { path, found: Number(envelope["format"]), writtenBy: String(envelope["by"]) };
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    if (isHoldfastError(error, "CORRUPT") || hasErrno(error, "EFBIG", "EISDIR"))
      return { path, damage: (error as Error).message };
    throw error;
  }
}

async function findNewestSlot(disk: Disk, directory: string): Promise<string | undefined> {
  const numbers = (await listIfThere(disk, directory)).filter((name) => findSlotNumber(name) !== undefined).sort();
  return numbers.length === 0 ? undefined : `${directory}/${numbers.at(-1)}`;
}

/** The format of one thing on the disk. */
export interface FormatReport {
  /** For people: "lock table". */
  readonly part: string;
  /** The record that tells the format. */
  readonly path: string;
  /** The format on the disk before the upgrade; undefined if its record is damaged. */
  readonly found?: number | undefined;
  /** The newest format that this release writes. */
  readonly newest: number;
  /** The version of Holdfast that wrote the record. */
  readonly writtenBy?: string | undefined;
  /** "older": an upgrade changes it. "newer": this release refuses it. */
  readonly state: "current" | "older" | "newer" | "damaged";
  /** States what an upgrade changes. */
  readonly change?: string | undefined;
  /** What is wrong with a damaged record. */
  readonly damage?: string | undefined;
  /** True if this call has made it the newest format. */
  readonly upgraded: boolean;
}

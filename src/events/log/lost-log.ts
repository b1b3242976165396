// A log of which parts are gone can look like one that was just made: appends would begin with position 1 again. What is left tells the two apart.
import { holdfastError } from "../../errors.ts";
import { findSlotNumber } from "../../format/name.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { isIndexName } from "../index/file/index-file.ts";
import { findLog, type LogRecord } from "./format/log-record.ts";
import { listSegments } from "./format/segment.ts";

/** The record of the log, undefined where there is no log yet. CORRUPT when it is missing beside what is made only after it. */
export async function findWholeLog(disk: Disk, directory: string): Promise<LogRecord | undefined> {
  const record = await findLog(disk, directory);
  const trace = record === undefined ? await findTrace(disk, directory) : undefined;
  if (trace === undefined) return record;
  // After the trace: whoever makes a log makes its record first, so that it is there by now if that was just being done.
  const late = await findLog(disk, directory);
  if (late !== undefined) return late;
  const path = `${directory}/log.json`;
  const message = `${path} is missing, and there is a log: ${trace} was made after it. Nothing was changed. Restore the file from a backup, or have it made anew: \`holdfast events verify --repair\`.`;
  throw holdfastError("CORRUPT", message, { path });
}

/** The path of something that only a log with a record has. */
async function findTrace(disk: Disk, directory: string): Promise<string | undefined> {
  const names = await namesIn(disk, directory);
  if (names.includes("head")) return `${directory}/head`;
  const [segment] = await segmentsIn(disk, directory);
  if (segment !== undefined) return `${directory}/segments`;
  return (await hasEpochs(disk, directory)) ? `${directory}/tenures` : undefined;
}

/** Whether the chain of tenures was ever begun. */
export async function hasEpochs(disk: Disk, directory: string): Promise<boolean> {
  const epochs = await namesIn(disk, `${directory}/tenures/epochs`);
  return epochs.some((name) => findSlotNumber(name) !== undefined);
}

/** For a log with segments and without a chain that says what counts of them. CORRUPT: to begin a new one would hide them all. */
export async function mustHaveEpochs(disk: Disk, directory: string): Promise<void> {
  if (await hasEpochs(disk, directory)) return;
  const path = `${directory}/tenures`;
  const message = `${path} is gone, or has lost its epochs: it says how much of ${directory}/segments counts. Nothing was changed. Restore it from a backup of the same moment as the segments; without one, \`holdfast events verify --repair\` makes it anew, and all lines that are whole count.`;
  throw holdfastError("CORRUPT", message, { path });
}

/** The path of an index, if there is one and no segment. Only on a local disk, where a listing is what is there. */
export async function findOrphanedIndex(disk: Disk, directory: string): Promise<string | undefined> {
  const index = (await namesIn(disk, `${directory}/index`)).find(isIndexName);
  if (index === undefined) return undefined;
  // After the indexes: a segment is there before anybody makes one of it.
  const segments = await segmentsIn(disk, directory);
  return segments.length === 0 ? `${directory}/index/${index}` : undefined;
}

/** For a log that reads as empty. CORRUPT. */
export async function mustBeNew(disk: Disk, directory: string): Promise<void> {
  const index = await findOrphanedIndex(disk, directory);
  if (index === undefined) return;
  const path = `${directory}/segments`;
  const message = `${path} has no segments, and ${index} was made of some: they are gone, and what says how far the log goes with them. Restore the log from a backup. If it is to begin anew, remove the whole directory.`;
  throw holdfastError("CORRUPT", message, { path });
}

export async function segmentsIn(disk: Disk, directory: string): Promise<number[]> {
  return await orNone(listSegments(disk, directory));
}

async function namesIn(disk: Disk, directory: string): Promise<string[]> {
  return await orNone(disk.list(directory));
}

async function orNone<T>(listing: Promise<T[]>): Promise<T[]> {
  try {
    return await listing;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

// A log that has lost some of its files can look like a new one, and appends would begin with
// position 1 again. The files that are left tell the two apart.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { isIndexName } from "../index/file/index-file.ts";
import { findLog, type LogRecord } from "../log/format/log-record.ts";
import { listSegments } from "../log/format/segment.ts";
import { hasEpochs } from "../log/publish/tenure-chain.ts";

/**
 * The record of the log; undefined where there is no log yet. CORRUPT when it is missing beside
 * files that are made after it.
 */
export async function findWholeLog(disk: Disk, directory: string): Promise<LogRecord | undefined> {
  const record = await findLog(disk, directory);
  const trace = record === undefined ? await findTrace(disk, directory) : undefined;
  if (trace === undefined) return record;
  // A second look: a process that is just making the log has made the record before the trace.
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

/**
 * The path of an index file, if there is one and no segment. Only on a local disk, where a listing
 * is complete.
 */
export async function findOrphanedIndex(disk: Disk, directory: string): Promise<string | undefined> {
  const index = (await namesIn(disk, `${directory}/index`)).find(isIndexName);
  if (index === undefined) return undefined;
  // After the indexes: a segment exists before any index is made from it.
  const segments = await segmentsIn(disk, directory);
  return segments.length === 0 ? `${directory}/index/${index}` : undefined;
}

/** For a log that reads as empty. CORRUPT when it had segments. */
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

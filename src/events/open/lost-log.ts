// Detects a log that has lost some of its files. It can look like a new one, and appends would
// start again at position 1. The remaining files tell the two apart.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { isIndexName } from "../index/file/index-file.ts";
import { findLog, type LogRecord } from "../log/format/log-record.ts";
import { listSegments } from "../log/format/segment.ts";
import { hasEpochs } from "../log/publish/tenure-chain.ts";

/**
 * Returns the record of the log, or undefined if there is no log yet. Throws CORRUPT if the record
 * is missing beside files that are created after it.
 */
export async function findWholeLog(disk: Disk, directory: string): Promise<LogRecord | undefined> {
  const record = await findLog(disk, directory);
  const trace = record === undefined ? await findTrace(disk, directory) : undefined;
  if (trace === undefined) return record;
  // Check again: a process that is just creating the log writes its record before these files.
  const late = await findLog(disk, directory);
  if (late !== undefined) return late;
  const path = `${directory}/log.json`;
  const message = `${path} is missing, but there is a log: ${trace} was created after it. Nothing was changed. Restore the file from a backup, or create it again: \`holdfast events verify --repair\`.`;
  throw holdfastError("CORRUPT", message, { path });
}

/** Returns the path of a file that exists only in a log with a record. */
async function findTrace(disk: Disk, directory: string): Promise<string | undefined> {
  const names = await namesIn(disk, directory);
  if (names.includes("head")) return `${directory}/head`;
  const [segment] = await segmentsIn(disk, directory);
  if (segment !== undefined) return `${directory}/segments`;
  return (await hasEpochs(disk, directory)) ? `${directory}/tenures` : undefined;
}

/**
 * Returns the path of an index file if one exists without any segment. Only for a local disk, where a listing is
 * complete.
 */
export async function findOrphanedIndex(disk: Disk, directory: string): Promise<string | undefined> {
  const index = (await namesIn(disk, `${directory}/index`)).find(isIndexName);
  if (index === undefined) return undefined;
  // List segments after indexes: a segment exists before any index of it.
  const segments = await segmentsIn(disk, directory);
  return segments.length === 0 ? `${directory}/index/${index}` : undefined;
}

/** For a log that reads as empty. Throws CORRUPT if files show that it had segments. */
export async function mustBeNew(disk: Disk, directory: string): Promise<void> {
  const index = await findOrphanedIndex(disk, directory);
  if (index === undefined) return;
  const path = `${directory}/segments`;
  const message = `${path} has no segments, but ${index} was built from some: they are gone, and so is the record of the log's length. Restore the log from a backup. To start a new log, remove the whole directory.`;
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

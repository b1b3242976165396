// Checks that a segment continues the log: its headers must lead back, one by one, to a published point, with all
// lines in between.
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import type { LogFiles } from "../log-files.ts";
import { scanFile, endsAt } from "./scan.ts";
import { openSegment, readHeader, segmentPath, type OpenedHeader } from "../format/segment.ts";
import { isEqualTip, type Tip } from "../format/tip.ts";

/**
 * Throws CORRUPT if segment `newest` does not lead back to `from`: it belongs to another log, or some files of the
 * log are older than the rest. `mayBranchOff`: it may continue the log at an existing point before `from`.
 */
export async function mustContinue(
  files: LogFiles,
  from: Tip,
  newest: number,
  { mayBranchOff = false }: { readonly mayBranchOff?: boolean } = {},
): Promise<void> {
  let number = newest;
  let end: Tip | undefined;
  while (number > from.segment) {
    const header = await getHeader(files, number);
    if (end !== undefined && !(await isThere(files, end)))
      throw foreign(files, newest, `it needs ${end.length} bytes of segment ${number}, which do not exist`);
    end = header.after;
    number = end.segment;
  }
  if (end === undefined) return;
  if (number !== from.segment) throw foreign(files, newest, `it leads past segment ${from.segment}, where the log is`);
  if (isEqualTip(end, from)) return;
  if (mayBranchOff && end.length < from.length && (await isThere(files, end))) return;
  if (end.length <= from.length || !(await reaches(files, from, end)))
    throw foreign(
      files,
      newest,
      `it goes on after byte ${end.length} of segment ${number}, where no line of this log ends`,
    );
}

async function getHeader(files: LogFiles, number: number): Promise<OpenedHeader> {
  const header = await readHeader(files.disk, files.directory, number).catch((error: unknown) => {
    if (!isHoldfastError(error, "CORRUPT") || hasErrno(error.cause, "ENOENT")) throw error;
    throw foreign(files, number, "its header cannot be read", error);
  });
  if (header.log !== files.logId) throw foreign(files, number, `it belongs to another log, ${header.log}`);
  if (header.after.segment >= number) throw foreign(files, number, `it leads on to segment ${header.after.segment}`);
  return header;
}

async function isThere(files: LogFiles, tip: Tip): Promise<boolean> {
  return await inSegment(files, tip, (file) => endsAt(file, tip));
}

/** True if the lines of a segment lead from one point in it to the other. */
async function reaches(files: LogFiles, from: Tip, to: Tip): Promise<boolean> {
  return await inSegment(files, to, async (file) => {
    if (!(await endsAt(file, from))) return false;
    let { length, crc } = from;
    for await (const lines of scanFile(file, { ...from, from: from.length, to: to.length }))
      for (const line of lines) [length, crc] = [line.offset + line.bytes.length, line.crc];
    return length === to.length && crc === to.crc;
  });
}

async function inSegment<T>(
  { disk, directory }: LogFiles,
  { segment }: Tip,
  look: (file: DiskFile) => Promise<T>,
): Promise<T> {
  const file = await openSegment(disk, directory, segment);
  try {
    return await look(file);
  } finally {
    await file.close();
  }
}

/** Returns the error for files of two logs, or of two moments of one log. The remedy is always the same. */
function foreign({ directory }: LogFiles, number: number, why: string, cause?: unknown): Error {
  const path = segmentPath(directory, number);
  const message = `${path} does not continue this log: ${why}. It was copied here, or part of the log was replaced, for example by a backup that was copied over it. Nothing was changed. Restore the whole log into an empty directory; or keep what is intact, and move the rest aside: \`holdfast events verify --repair\`.`;
  return holdfastError("CORRUPT", message, { path }, cause);
}

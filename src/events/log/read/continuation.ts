// Whether a segment continues the log: header by header it leads back to a point that counts, with
// all lines in between.
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import type { LogFiles } from "../log-files.ts";
import { scanFile, standsIn } from "./scan.ts";
import { openSegment, readHeader, segmentPath, type OpenedHeader } from "../format/segment.ts";
import { isEqualTip, type Tip } from "../format/tip.ts";

/**
 * CORRUPT when the segment `newest` does not lead back to `from`: it is of another log, or some
 * files of the log are older than the rest. `mayBranchOff`: it may continue the log before `from`,
 * at a point that is there.
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
      throw foreign(files, newest, `it needs ${end.length} bytes of segment ${number}, which are not there`);
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
      `it goes on after byte ${end.length} of segment ${number}, which is no end of a line of this log`,
    );
}

async function getHeader(files: LogFiles, number: number): Promise<OpenedHeader> {
  const header = await readHeader(files.disk, files.directory, number).catch((error: unknown) => {
    if (!isHoldfastError(error, "CORRUPT") || hasErrno(error.cause, "ENOENT")) throw error;
    throw foreign(files, number, "its header cannot be read", error);
  });
  if (header.log !== files.logId) throw foreign(files, number, `it is of another log, ${header.log}`);
  if (header.after.segment >= number) throw foreign(files, number, `it leads on to segment ${header.after.segment}`);
  return header;
}

async function isThere(files: LogFiles, tip: Tip): Promise<boolean> {
  return await inSegment(files, tip, (file) => standsIn(file, tip));
}

/** Whether the lines of a segment lead from one point of it to the other. */
async function reaches(files: LogFiles, from: Tip, to: Tip): Promise<boolean> {
  return await inSegment(files, to, async (file) => {
    if (!(await standsIn(file, from))) return false;
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

/**
 * The remedy is the same in all cases: files of two moments of the log are mixed here, or of two
 * logs.
 */
function foreign({ directory }: LogFiles, number: number, why: string, cause?: unknown): Error {
  const path = segmentPath(directory, number);
  const message = `${path} does not continue this log: ${why}. It was put here, or a part of the log was replaced by another one, as by a backup that was copied over it. Nothing was changed. Restore the whole log into an empty directory; or keep all that is whole, and have the rest moved aside: \`holdfast events verify --repair\`.`;
  return holdfastError("CORRUPT", message, { path }, cause);
}

// Leftovers of crashes: segments that never counted, and bytes that no process reads.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { mustContinue } from "../log/read/continuation.ts";
import type { LogFiles } from "../log/log-files.ts";
import { isPreallocatedFrom } from "../log/read/scan.ts";
import { segmentPath } from "../log/format/segment.ts";
import { TenureChain, type Tenures } from "../log/publish/tenure-chain.ts";
import { moveAside } from "../../part/aside.ts";
import type { Findings } from "../../part/findings.ts";
import { repairRemedy, existingSegments, type PublishedSegments, type ChainedSegment } from "./published.ts";

/** The remedy if files of several logs, or of several states of one log, are mixed. */
const mixed = `Restore the whole log into an empty directory. ${repairRemedy}`;

export interface LeftoverCheck {
  readonly segments: readonly ChainedSegment[];
  /** The offset in the last of these segments up to which it was checked; undefined if unknown. */
  readonly length: number | undefined;
  /** How far the log was published when the check began, and how far it is now. */
  readonly published: PublishedSegments;
  readonly now: PublishedSegments;
  /** True if the list of segments is certainly complete. If not, a repair may need a missing one. */
  readonly isSure: boolean;
  readonly repair: boolean;
}

export async function reportLeftovers(files: LogFiles, check: LeftoverCheck, findings: Findings): Promise<void> {
  const { segments, length, published, now, isSure, repair } = check;
  const known = new Set(segments.map(({ number }) => number));
  for (const number of await existingSegments(files)) {
    if (known.has(number)) continue;
    const path = segmentPath(files.directory, number);
    // A writer that can still publish never has a segment number below a published one.
    if (number < published.segment && isSure) {
      const repaired = repair && (await moveAside(files, path));
      const what =
        "No segment leads to this one: its writer died, or another took over. Nothing in it was acknowledged.";
      const remedy = repaired
        ? "It is in aside/. Delete it when you like."
        : "Nothing to do; `--repair` moves it aside.";
      findings.leftover({ path }, what, remedy, { repaired });
    } else if (number > now.segment) {
      if (await mayBelong(files, number, now))
        findings.note(
          { path },
          "This segment is not published yet.",
          "Nothing to do: the next append continues it, or leaves it behind.",
        );
      else
        findings.damage(
          { path },
          "This segment does not continue the log, so no process can append: it was copied here, or part of the log was replaced by an older one.",
          mixed,
        );
    }
  }
  for (const [index, { path, end }] of segments.entries()) {
    const isLast = index === segments.length - 1;
    await reportBeyond(files, path, end?.length ?? (isLast ? length : undefined), {
      findings,
      tenures: isLast ? now.tenures : undefined,
    });
  }
}

/** True if a writer may have created this segment, and be active or dead. */
async function mayBelong(files: LogFiles, number: number, { tip, tenures }: PublishedSegments): Promise<boolean> {
  // Read the chain again: a writer is named before its segment is created.
  if (tenures !== undefined) return number <= (await (await TenureChain.open(files)).state()).segments;
  // The id of the log is unknown, which was reported.
  if (tip === undefined || files.logId === "") return true;
  try {
    await mustContinue(files, tip, number);
    return true;
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    return false;
  }
}

/** True if no writer was named then, and none since. */
async function isIdle(files: LogFiles, { writer, by }: Tenures): Promise<boolean> {
  return writer === undefined && (await (await TenureChain.open(files)).state()).by === by;
}

async function reportBeyond(
  files: LogFiles,
  path: string,
  length: number | undefined,
  { findings, tenures }: { readonly findings: Findings; readonly tenures: Tenures | undefined },
): Promise<void> {
  if (length === undefined) return;
  const { disk } = files;
  try {
    const { size } = await disk.stat(path);
    if (size <= length || (await hasOnlyRoom(disk, path, length))) return;
    if (tenures !== undefined && (await isIdle(files, tenures))) {
      const what = `${size - length} bytes follow the published end, and no writer was named that could have written them: the tenures are older than this segment.`;
      findings.damage({ path, byte: length }, what, mixed);
      return;
    }
    const what = `${size - length} bytes follow the published end. No process reads them.`;
    const remedy =
      "Nothing to do: a writer is active, or died, or its disk failed. The log continues in another segment.";
    findings.note({ path, byte: length }, what, remedy);
  } catch (error) {
    // This was reported before.
    if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
  }
}

async function hasOnlyRoom(disk: Disk, path: string, from: number): Promise<boolean> {
  const file = await disk.open(path, "read");
  try {
    return await isPreallocatedFrom(file, from);
  } finally {
    await file.close();
  }
}

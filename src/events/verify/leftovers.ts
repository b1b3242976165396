// Leftovers of crashes: segments that never counted, and bytes that no process reads.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { mustContinue } from "../log/read/continuation.ts";
import type { LogFiles } from "../log/log-files.ts";
import { isRoomFrom } from "../log/publish/preallocation.ts";
import { segmentPath } from "../log/format/segment.ts";
import { TenureChain, type Tenures } from "../log/publish/tenure-chain.ts";
import { moveAside } from "../../part/aside.ts";
import type { Findings } from "../../part/findings.ts";
import { repairable, segmentsThere, type Published, type ChainedSegment } from "./published.ts";

/** The remedy for files of several moments of a log, or of several logs. */
const mixed = `Restore the whole log into an empty directory. ${repairable}`;

export interface LeftoverCheck {
  readonly segments: readonly ChainedSegment[];
  /**
   * Where the last of these segments ends, as far as it was checked; undefined when that is
   * unknown.
   */
  readonly length: number | undefined;
  /** How far the log went when the check began, and how far it goes now. */
  readonly published: Published;
  readonly now: Published;
  /** Whether these are surely all segments. Otherwise another one may be needed by a repair. */
  readonly isSure: boolean;
  readonly repair: boolean;
}

export async function reportLeftovers(place: LogFiles, check: LeftoverCheck, findings: Findings): Promise<void> {
  const { segments, length, published, now, isSure, repair } = check;
  const known = new Set(segments.map(({ number }) => number));
  for (const number of await segmentsThere(place)) {
    if (known.has(number)) continue;
    const path = segmentPath(place.directory, number);
    // A writer that can still publish never has a number below a published one.
    if (number < published.segment && isSure) {
      const repaired = repair && (await moveAside(place, path));
      const what =
        "No segment leads to this one: its writer died, or another took over. Nothing in it was acknowledged.";
      const remedy = repaired
        ? "It is in aside/. Delete it when you like."
        : "Nothing to do; `--repair` moves it aside.";
      findings.leftover({ path }, what, remedy, { repaired });
    } else if (number > now.segment) {
      if (await mayBelong(place, number, now))
        findings.note(
          { path },
          "This segment is not published yet.",
          "Nothing to do: the next append takes it up, or leaves it behind.",
        );
      else
        findings.damage(
          { path },
          "This segment does not continue the log, so no process can append: it was put here, or a part of the log was replaced by an older one.",
          mixed,
        );
    }
  }
  for (const [index, { path, end }] of segments.entries()) {
    const isLast = index === segments.length - 1;
    await reportBeyond(place, path, end?.length ?? (isLast ? length : undefined), {
      findings,
      tenures: isLast ? now.tenures : undefined,
    });
  }
}

/** Whether a writer may have made it, and be at work or dead. */
async function mayBelong(place: LogFiles, number: number, { tip, tenures }: Published): Promise<boolean> {
  // Read again: a writer is named before its segment is made.
  if (tenures !== undefined) return number <= (await (await TenureChain.open(place)).state()).segments;
  // The id of the log is unknown, which was reported.
  if (tip === undefined || place.logId === "") return true;
  try {
    await mustContinue(place, tip, number);
    return true;
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    return false;
  }
}

/** Whether no writer was named then, nor since. */
async function isIdle(place: LogFiles, { writer, by }: Tenures): Promise<boolean> {
  return writer === undefined && (await (await TenureChain.open(place)).state()).by === by;
}

async function reportBeyond(
  place: LogFiles,
  path: string,
  length: number | undefined,
  { findings, tenures }: { readonly findings: Findings; readonly tenures: Tenures | undefined },
): Promise<void> {
  if (length === undefined) return;
  const { disk } = place;
  try {
    const { size } = await disk.stat(path);
    if (size <= length || (await hasOnlyRoom(disk, path, length))) return;
    if (tenures !== undefined && (await isIdle(place, tenures))) {
      const what = `${size - length} bytes stand beyond the published end, and no writer was named that could have written them: the tenures are older than this segment.`;
      findings.damage({ path, byte: length }, what, mixed);
      return;
    }
    const what = `${size - length} bytes stand beyond the published end. No process reads them.`;
    const remedy =
      "Nothing to do: a writer is at work, or died, or its disk failed. The log goes on in another segment.";
    findings.note({ path, byte: length }, what, remedy);
  } catch (error) {
    // Reported before.
    if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
  }
}

async function hasOnlyRoom(disk: Disk, path: string, from: number): Promise<boolean> {
  const file = await disk.open(path, "read");
  try {
    return await isRoomFrom(file, from);
  } finally {
    await file.close();
  }
}

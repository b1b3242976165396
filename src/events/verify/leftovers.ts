// What crashes leave behind: segments that never came to count, and bytes that nobody reads.
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { mustContinue } from "../log/read/continuation.ts";
import type { LogFiles } from "../log/log-files.ts";
import { isRoomFrom } from "../log/publish/preallocation.ts";
import { segmentPath } from "../log/format/segment.ts";
import { TenureChain, type Tenures } from "../log/publish/tenure-chain.ts";
import { moveAside } from "./aside.ts";
import { repairable, type Findings } from "../../part/findings.ts";
import { segmentsThere, type Published } from "./published.ts";
import type { Stop } from "./segment-order.ts";

/** Parts of several moments of a log, or of several logs. */
const mixed = `Restore the whole log into an empty directory. ${repairable}`;

export interface Leftovers {
  readonly way: readonly Stop[];
  /** Where the last segment of the way ends, as far as it was followed; undefined when it is not known. */
  readonly length: number | undefined;
  /** How far the log went when we began, and how far it goes by now. */
  readonly published: Published;
  readonly now: Published;
  /** Whether the way is known to be the way: else a segment beside it may yet be wanted. */
  readonly isSure: boolean;
  readonly repair: boolean;
}

export async function reportLeftovers(place: LogFiles, leftovers: Leftovers, findings: Findings): Promise<void> {
  const { way, length, published, now, isSure, repair } = leftovers;
  const onWay = new Set(way.map(({ number }) => number));
  for (const number of await segmentsThere(place)) {
    if (onWay.has(number)) continue;
    const path = segmentPath(place.directory, number);
    // The number of a writer who can still publish is never below one that is published.
    if (number < published.segment && isSure) {
      const repaired = repair && (await moveAside(place, path));
      const what =
        "Nothing leads to this segment: its writer died, or another took over. Nothing in it was ever acknowledged.";
      const remedy = repaired ? "It is in aside/; delete it when you like." : "Nothing; `--repair` moves it aside.";
      findings.leftover({ path }, what, remedy, { repaired });
    } else if (number > now.segment) {
      if (await mayBelong(place, number, now))
        findings.note(
          { path },
          "This segment is not published yet.",
          "Nothing: the next append takes it up, or leaves it behind.",
        );
      else
        findings.damage(
          { path },
          "This segment does not continue the log, so that nobody can append: it was put here, or a part of the log was replaced by an older one.",
          mixed,
        );
    }
  }
  for (const [index, { path, end }] of way.entries()) {
    const isLast = index === way.length - 1;
    await reportBeyond(place, path, end?.length ?? (isLast ? length : undefined), {
      findings,
      tenures: isLast ? now.tenures : undefined,
    });
  }
}

/** Whether its maker may be at work, or may have died over it. */
async function mayBelong(place: LogFiles, number: number, { tip, tenures }: Published): Promise<boolean> {
  // Asked again: a writer is named before its segment is made.
  if (tenures !== undefined) return number <= (await (await TenureChain.open(place)).state()).segments;
  // Whose log this is was not known, which was reported.
  if (tip === undefined || place.logId === "") return true;
  try {
    await mustContinue(place, tip, number);
    return true;
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    return false;
  }
}

/** Whether nobody was named, nor has been since. */
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
      const what = `${size - length} bytes stand beyond what is published, and nobody can have written them there: the tenures are older than this segment.`;
      findings.damage({ path, byte: length }, what, mixed);
      return;
    }
    const what = `${size - length} bytes stand beyond what is published. Nobody reads them.`;
    const remedy =
      "Nothing: a writer is at it right now, or died, or its disk failed; the log goes on in another segment.";
    findings.note({ path, byte: length }, what, remedy);
  } catch (error) {
    // Said before.
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

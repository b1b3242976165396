// Determines from the files how far a log is published, and lists the segments up to there in order.
import { slotNumberMax } from "../../format/name.ts";
import { findIfThere } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { isKnownBoot } from "../../ports/host.ts";
import type { LogMode } from "../model/event-store.ts";
import { HeadFile } from "../log/publish/head-file.ts";
import { findOrphanedIndex, segmentsIn } from "../open/lost-log.ts";
import type { LogFiles } from "../log/log-files.ts";
import { hasEpochs, TenureChain, type Tenures } from "../log/publish/tenure-chain.ts";
import { readHeader, segmentPath, type OpenedHeader } from "../log/format/segment.ts";
import { decodeTip, type Tip } from "../log/format/tip.ts";
import { endsAt } from "../log/read/scan.ts";
import type { Findings } from "../../part/findings.ts";

/** The remedy if there is no backup. */
export const repairRemedy: string =
  "Without a backup, `holdfast events verify DIR --repair` keeps what is intact, and moves the rest aside.";

export const restoreRemedy: string = `Restore the file from a backup. ${repairRemedy}`;

export interface PublishedSegments {
  /** The segment in which the log ends; 0 if it has none. */
  readonly segment: number;
  /** Undefined if no file states it, for example after a restart. Then all valid lines count. */
  readonly tip?: Tip | undefined;
  /** The tip that was published at some time before a restart. Lines after it may count too. */
  readonly floor?: Tip | undefined;
  /** True if no file ever stated how far the log goes. Then an invalid line is damage, not the end of the log. */
  readonly isUnsaid?: boolean;
  /** Set in mode share if the chain of tenures can be read. */
  readonly tenures?: Tenures | undefined;
}

export async function findPublished(files: LogFiles, mode: LogMode, findings: Findings): Promise<PublishedSegments> {
  const published = mode === "local" ? await findLocal(files, findings) : await findShared(files, findings);
  if (published.segment <= slotNumberMax) return published;
  findings.damage(
    { path: files.directory },
    `The log claims to end in segment ${published.segment}, a number that is too high.`,
  );
  return { segment: (await existingSegments(files)).at(-1) ?? 0 };
}

async function findLocal(files: LogFiles, findings: Findings): Promise<PublishedSegments> {
  const { disk, directory, bootId } = files;
  const path = `${directory}/head`;
  const file = new HeadFile(disk, path);
  const before = findings.problems.length;
  let head: Awaited<ReturnType<HeadFile["find"]>>;
  try {
    head = await findings.attempt({ path }, "The head", () => file.find());
  } finally {
    await file.close();
  }
  // If the file system was remounted in this boot, lines that were not synced are lost. If the head survived, it
  // proves nothing.
  if (head?.boot === bootId && isKnownBoot(bootId) && (head.isSynced || (await isThere(files, head.tip))))
    return { segment: head.tip.segment, tip: head.tip };
  // If the head has a newer format, that was reported, and it is not torn.
  if (head === undefined && findings.problems.length === before) await reportTorn(disk, path, findings);
  const segment = (await existingSegments(files)).at(-1) ?? 0;
  if (segment === 0) await reportLost(files, findings);
  // A power cut may tear the head but cannot remove it.
  const isUnsaid = head === undefined && !(await disk.canOpen(path));
  return head === undefined ? { segment, isUnsaid } : { segment, floor: head.isSynced ? head.tip : undefined };
}

async function isThere({ disk, directory }: LogFiles, tip: Tip): Promise<boolean> {
  if (tip.segment === 0) return true;
  const file = await findIfThere(disk.open(segmentPath(directory, tip.segment), "read"));
  if (file === undefined) return false;
  try {
    return await endsAt(file, tip);
  } finally {
    await file.close();
  }
}

/** An empty head belongs to a log that was just created. */
async function reportTorn(disk: Disk, path: string, findings: Findings): Promise<void> {
  const size = (await disk.findStat(path))?.size ?? 0;
  if (size === 0) return;
  const what = "The head is torn or altered. All valid lines count, as after a power cut.";
  findings.leftover({ path }, what, "Nothing to do: the next append writes it again.");
}

async function reportLost({ disk, directory }: LogFiles, findings: Findings): Promise<void> {
  const index = await findOrphanedIndex(disk, directory);
  if (index === undefined) return;
  const what = `There are no segments, but ${index} was built from some: they are gone, and so is the head.`;
  findings.damage({ path: `${directory}/segments` }, what, "Restore both from a backup before you append anything.");
}

async function findShared(files: LogFiles, findings: Findings): Promise<PublishedSegments> {
  const path = `${files.directory}/tenures`;
  const segments = await existingSegments(files);
  // Check before opening: that would create an empty chain, which would make the log appear empty.
  if (!(await hasEpochs(files.disk, files.directory))) {
    const what = "The chain of tenures is missing, so nothing records which lines count.";
    const remedy = `Restore it from a backup of the same moment as the segments. ${repairRemedy}`;
    if (segments.length > 0) findings.damage({ path }, what, remedy);
    return { segment: segments.at(-1) ?? 0, isUnsaid: true };
  }
  const tenures = await findings.attempt({ path }, "The chain of tenures", async () => {
    const chain = await TenureChain.open(files);
    return await chain.state();
  });
  if (tenures === undefined) return { segment: segments.at(-1) ?? 0, isUnsaid: true };
  const tip = decodeTip(tenures.tip);
  return { segment: tip.segment, tip, tenures };
}

export async function existingSegments({ disk, directory }: LogFiles): Promise<number[]> {
  return await segmentsIn(disk, directory);
}

/** A segment of the log, as the headers link it to others. */
export interface ChainedSegment {
  readonly number: number;
  readonly path: string;
  /** Undefined if it cannot be read. That was reported. */
  readonly header: OpenedHeader | undefined;
  /** The end of this segment according to the next header or the log. Undefined: nothing states it. */
  readonly end: Tip | undefined;
  /**
   * If `end` is unknown: an invalid line before this byte is damage, and an invalid line after it is where the log
   * ends.
   */
  readonly floorBytes: number;
}

/** Returns the segments in the order of the log, found by following the headers from the last to the first. */
export async function findSegments(
  files: LogFiles,
  { segment, tip, floor, isUnsaid = false }: PublishedSegments,
  findings: Findings,
): Promise<ChainedSegment[]> {
  const there = await existingSegments(files);
  const chain: ChainedSegment[] = [];
  let number = segment;
  let end = tip;
  while (number > 0) {
    const header = await findHeader(files, number, findings);
    const isFloor = floor?.segment === number;
    const floorBytes = isUnsaid ? Infinity : isFloor ? floor.length : 0;
    chain.push({ number, path: segmentPath(files.directory, number), header, end, floorBytes });
    end = header?.after;
    // Without a header the previous segment is unknown: assume the next lower number.
    number = header?.after.segment ?? there.findLast((each) => each < number) ?? 0;
  }
  return chain.reverse();
}

async function findHeader(files: LogFiles, number: number, findings: Findings): Promise<OpenedHeader | undefined> {
  const path = segmentPath(files.directory, number);
  const location = { path, line: 1, byte: 0 };
  const header = await findings.attempt(location, "The header of this segment", () =>
    readHeader(files.disk, files.directory, number),
  );
  if (header === undefined || header.after.segment < number) return header;
  findings.damage(location, `The header claims that this segment follows segment ${header.after.segment}.`);
  return undefined;
}

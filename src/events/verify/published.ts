// How far a log is published, as its files say, and the segments up to there in their order.
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
import { standsIn } from "../log/read/scan.ts";
import type { Findings } from "../../part/findings.ts";

/** The remedy where there is no backup. */
export const repairable: string =
  "Without a backup, `holdfast events verify DIR --repair` keeps all that is whole, and moves the rest aside.";

export const restore: string = `Restore the file from a backup. ${repairable}`;

export interface Published {
  /** The segment in which the log ends; 0 when it has none. */
  readonly segment: number;
  /** Undefined when no file says so, as after a restart: then all valid lines count. */
  readonly tip?: Tip | undefined;
  /** Published at some time before a restart. Lines behind it may count, too. */
  readonly floor?: Tip | undefined;
  /**
   * No file says how far the log goes, or ever said: then a line that does not fit is damage, and
   * not the end.
   */
  readonly isUnsaid?: boolean;
  /** In mode share, if the chain of tenures can be read. */
  readonly tenures?: Tenures | undefined;
}

export async function findPublished(place: LogFiles, mode: LogMode, findings: Findings): Promise<Published> {
  const published = mode === "local" ? await findLocal(place, findings) : await findShared(place, findings);
  if (published.segment <= slotNumberMax) return published;
  findings.damage(
    { path: place.directory },
    `The log says that it ends in segment ${published.segment}, a number that is too high.`,
  );
  return { segment: (await segmentsThere(place)).at(-1) ?? 0 };
}

async function findLocal(place: LogFiles, findings: Findings): Promise<Published> {
  const { disk, directory, bootId } = place;
  const path = `${directory}/head`;
  const file = new HeadFile(disk, path);
  const before = findings.problems.length;
  let head: Awaited<ReturnType<HeadFile["find"]>>;
  try {
    head = await findings.attempt({ path }, "The head", () => file.find());
  } finally {
    await file.close();
  }
  // Lines that were not synced are gone where the file system went away and came back in this boot.
  // The head may have stayed: then it tells nothing.
  if (head?.boot === bootId && isKnownBoot(bootId) && (head.isSynced || (await isThere(place, head.tip))))
    return { segment: head.tip.segment, tip: head.tip };
  // A head of a newer format was reported, and is not torn.
  if (head === undefined && findings.problems.length === before) await reportTorn(disk, path, findings);
  const segment = (await segmentsThere(place)).at(-1) ?? 0;
  if (segment === 0) await reportLost(place, findings);
  // A power cut may tear the head, and never removes it.
  const isUnsaid = head === undefined && !(await disk.canOpen(path));
  return head === undefined ? { segment, isUnsaid } : { segment, floor: head.isSynced ? head.tip : undefined };
}

async function isThere({ disk, directory }: LogFiles, tip: Tip): Promise<boolean> {
  if (tip.segment === 0) return true;
  const file = await findIfThere(disk.open(segmentPath(directory, tip.segment), "read"));
  if (file === undefined) return false;
  try {
    return await standsIn(file, tip);
  } finally {
    await file.close();
  }
}

/** An empty head is one that was just made. */
async function reportTorn(disk: Disk, path: string, findings: Findings): Promise<void> {
  const size = (await disk.findStat(path))?.size ?? 0;
  if (size === 0) return;
  const what = "The head is torn or altered. All valid lines count, as after a power cut.";
  findings.leftover({ path }, what, "Nothing to do: the next append writes it anew.");
}

async function reportLost({ disk, directory }: LogFiles, findings: Findings): Promise<void> {
  const index = await findOrphanedIndex(disk, directory);
  if (index === undefined) return;
  const what = `There are no segments, but ${index} was made from some: they are gone, and so is the head.`;
  findings.damage({ path: `${directory}/segments` }, what, "Restore both from a backup before you append anything.");
}

async function findShared(place: LogFiles, findings: Findings): Promise<Published> {
  const path = `${place.directory}/tenures`;
  const segments = await segmentsThere(place);
  // Before it is opened: opening would make an empty chain, and by that chain the log is empty.
  if (!(await hasEpochs(place.disk, place.directory))) {
    const what = "The chain of tenures is missing, so nothing says which lines count.";
    const remedy = `Restore it from a backup of the same moment as the segments. ${repairable}`;
    if (segments.length > 0) findings.damage({ path }, what, remedy);
    return { segment: segments.at(-1) ?? 0, isUnsaid: true };
  }
  const tenures = await findings.attempt({ path }, "The chain of tenures", async () => {
    const chain = await TenureChain.open(place);
    return await chain.state();
  });
  if (tenures === undefined) return { segment: segments.at(-1) ?? 0, isUnsaid: true };
  const tip = decodeTip(tenures.tip);
  return { segment: tip.segment, tip, tenures };
}

export async function segmentsThere({ disk, directory }: LogFiles): Promise<number[]> {
  return await segmentsIn(disk, directory);
}

/** A segment of the log, as the headers link them. */
export interface ChainedSegment {
  readonly number: number;
  readonly path: string;
  /** Undefined when it cannot be read, which was reported. */
  readonly header: OpenedHeader | undefined;
  /** The end of this segment, as the next header or the log says. Undefined: nothing says so. */
  readonly end: Tip | undefined;
  /** Without `end`: a line that does not fit is damage before this byte, and the end behind it. */
  readonly floorBytes: number;
}

/** In the order of the log: from the last segment back to the first, as the headers lead. */
export async function findSegments(
  place: LogFiles,
  { segment, tip, floor, isUnsaid = false }: Published,
  findings: Findings,
): Promise<ChainedSegment[]> {
  const there = await segmentsThere(place);
  const chain: ChainedSegment[] = [];
  let number = segment;
  let end = tip;
  while (number > 0) {
    const header = await findHeader(place, number, findings);
    const isFloor = floor?.segment === number;
    const floorBytes = isUnsaid ? Infinity : isFloor ? floor.length : 0;
    chain.push({ number, path: segmentPath(place.directory, number), header, end, floorBytes });
    end = header?.after;
    // Without a header the segment before this one is not known. Most likely it is the next lower
    // number.
    number = header?.after.segment ?? there.findLast((each) => each < number) ?? 0;
  }
  return chain.reverse();
}

async function findHeader(place: LogFiles, number: number, findings: Findings): Promise<OpenedHeader | undefined> {
  const path = segmentPath(place.directory, number);
  const spot = { path, line: 1, byte: 0 };
  const header = await findings.attempt(spot, "The header of this segment", () =>
    readHeader(place.disk, place.directory, number),
  );
  if (header === undefined || header.after.segment < number) return header;
  findings.damage(spot, `The header says that this segment follows segment ${header.after.segment}.`);
  return undefined;
}

// How far the log is published, as the log itself says; and what to say when it does not.
import { slotNumberMax } from "../../format/name.ts";
import type { Disk } from "../../ports/disk.ts";
import { isKnownBoot } from "../../ports/host.ts";
import type { LogMode } from "../model/event-store.ts";
import { HeadFile } from "../log/publish/head-file.ts";
import { findOrphanedIndex, hasEpochs, segmentsIn } from "../log/lost-log.ts";
import type { LogFiles } from "../log/log-files.ts";
import { SharePublisher, type Tenures } from "../log/publish/share-publisher.ts";
import { decodeTip, type Tip } from "../log/format/tip.ts";
import { repairable, type Findings } from "../../part/findings.ts";

export interface Published {
  /** The segment in which the log ends; 0 when it has none. */
  readonly segment: number;
  /** Undefined when nobody says so, as after a restart: then all that is valid counts. */
  readonly tip?: Tip | undefined;
  /** Counted at some time before a restart. What follows it may count, too. */
  readonly floor?: Tip | undefined;
  /** Nobody says how far it goes, nor ever said: then a line that does not fit is damage, and not the end. */
  readonly isUnsaid?: boolean;
  /** Mode share, where the chain can be read. */
  readonly tenures?: Tenures | undefined;
}

export async function findPublished(place: LogFiles, mode: LogMode, findings: Findings): Promise<Published> {
  const published = mode === "local" ? await findLocal(place, findings) : await findShared(place, findings);
  if (published.segment <= slotNumberMax) return published;
  findings.damage(
    { path: place.directory },
    `The log says that it ends in segment ${published.segment}, which cannot be.`,
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
  if (head !== undefined && head.boot === bootId && isKnownBoot(bootId))
    return { segment: head.tip.segment, tip: head.tip };
  // One of a newer format was reported, and is not torn.
  if (head === undefined && findings.problems.length === before) await reportTorn(disk, path, findings);
  const segment = (await segmentsThere(place)).at(-1) ?? 0;
  if (segment === 0) await reportLost(place, findings);
  // A power cut may tear it, and never take it.
  const isUnsaid = head === undefined && !(await disk.canOpen(path));
  return head === undefined ? { segment, isUnsaid } : { segment, floor: head.isSynced ? head.tip : undefined };
}

/** An empty one is how it is made. */
async function reportTorn(disk: Disk, path: string, findings: Findings): Promise<void> {
  const size = (await disk.findStat(path))?.size ?? 0;
  if (size === 0) return;
  const what = "The head is torn or altered, so all valid lines count, as after a power cut.";
  findings.leftover({ path }, what, "Nothing: the next append writes it anew.");
}

async function reportLost({ disk, directory }: LogFiles, findings: Findings): Promise<void> {
  const index = await findOrphanedIndex(disk, directory);
  if (index === undefined) return;
  const what = `There are no segments, and ${index} was made of some: they are gone, and the head too.`;
  findings.damage({ path: `${directory}/segments` }, what, "Restore both from a backup before anything is appended.");
}

async function findShared(place: LogFiles, findings: Findings): Promise<Published> {
  const path = `${place.directory}/tenures`;
  const segments = await segmentsThere(place);
  // Before it is opened: to open it where there is none would make an empty one, by which the log is empty.
  if (!(await hasEpochs(place.disk, place.directory))) {
    const what = "The chain of tenures is missing, so nobody can say what counts.";
    const remedy = `Restore it from a backup of the same moment as the segments. ${repairable}`;
    if (segments.length > 0) findings.damage({ path }, what, remedy);
    return { segment: segments.at(-1) ?? 0, isUnsaid: true };
  }
  const tenures = await findings.attempt({ path }, "The chain of tenures", async () => {
    const publisher = await SharePublisher.openAsItIs(place);
    return await publisher.state();
  });
  if (tenures === undefined) return { segment: segments.at(-1) ?? 0, isUnsaid: true };
  const tip = decodeTip(tenures.tip);
  return { segment: tip.segment, tip, tenures };
}

export async function segmentsThere({ disk, directory }: LogFiles): Promise<number[]> {
  return await segmentsIn(disk, directory);
}

// Repairs a log under its gate. It writes a missing record again from the segments, moves foreign segments aside, and
// writes all whole lines after the first damage again. It deletes nothing.
import { isHoldfastError } from "../../errors.ts";
import type { LogMode } from "../model/event-store.ts";
import { copyOf } from "../log/format/segment.ts";
import { LocalPublisher } from "../log/publish/local-publisher.ts";
import { recordedGround } from "../../part/part.ts";
import { decideLog, findLog } from "../log/format/log-record.ts";
import { LogFiles } from "../log/log-files.ts";
import { readHeader, segmentPath, type OpenedHeader } from "../log/format/segment.ts";
import { SharePublisher } from "../log/publish/share-publisher.ts";
import { emptyTip, isEqualTip, storedTip, type Tip } from "../log/format/tip.ts";
import { moveAside } from "../../part/aside.ts";
import { Findings } from "../../part/findings.ts";
import {
  findPublished,
  findSegments,
  existingSegments,
  type PublishedSegments,
  type ChainedSegment,
} from "./published.ts";
import { Rewriter } from "./rewriter.ts";
import { startOf, checkSegment, type CheckContext, type CheckState } from "./segment-check.ts";

export interface RepairResult {
  /** Number of lost events. */
  readonly lost: number;
  readonly position: number;
}

/** Returns undefined if the id of the log cannot be determined. Throws LOCK_LOST. */
export async function repairLog(
  found: LogFiles,
  mode: LogMode,
  signal?: AbortSignal,
): Promise<RepairResult | undefined> {
  const files = await identify(found, mode);
  if (files === undefined) return undefined;
  const published = await findPublished(files, mode, new Findings());
  const end = await findEnd(files, published);
  const segments = await findSegments(files, end, new Findings());
  for (const number of await existingSegments(files))
    if (isForeign(number, published) && !segments.some((segment) => segment.number === number))
      await moveAside(files, segmentPath(files.directory, number));
  const publisher = await openPublisher(files, mode, published);
  try {
    return await rewrite({ files, published, end, segments, signal, publisher });
  } finally {
    await publisher.close();
  }
}

/** Writes the record of the log again if it is missing or damaged and all segments name the same log. */
async function identify(files: LogFiles, mode: LogMode): Promise<LogFiles | undefined> {
  const { ground, directory, staging } = files;
  const known = await new Findings().attempt({ path: directory }, "", () => findLog(files.disk, directory));
  const headers = await headersOf(files);
  const [id, ...others] = new Set(known === undefined ? headers.map(({ log }) => log) : [known.id]);
  if (id === undefined || others.length > 0) return undefined;
  if (known === undefined) {
    // The file may exist but be unreadable.
    await moveAside(files, `${directory}/log.json`);
    await decideLog(staging, directory, { id, mode, ...recordedGround(directory, files.ground) });
  }
  const { isSynced, segmentBytesMax } = files;
  return new LogFiles(ground, directory, id, { isSynced, segmentBytesMax });
}

async function headersOf(files: LogFiles): Promise<OpenedHeader[]> {
  const headers: OpenedHeader[] = [];
  for (const number of await existingSegments(files)) {
    const header = await findHeader(files, number);
    if (header !== undefined) headers.push(header);
  }
  return headers;
}

async function findHeader({ disk, directory }: LogFiles, number: number): Promise<OpenedHeader | undefined> {
  try {
    return await readHeader(disk, directory, number);
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT", "IO_ERROR")) return undefined;
    throw error;
  }
}

/**
 * Returns where the log ends if all whole lines count. That may be in a later segment, if the head or the tenures
 * were restored from an older state. It may also be after the tip, if no active writer can have written those lines
 * without publishing them.
 */
async function findEnd(files: LogFiles, published: PublishedSegments): Promise<PublishedSegments> {
  const { tip, floor, tenures } = published;
  const base = tip ?? floor ?? emptyTip;
  for (const number of (await existingSegments(files)).reverse()) {
    if (!isForeign(number, published)) break;
    const header = await findHeader(files, number);
    const isLater = header !== undefined && header.after.segment < number && header.after.position >= base.position;
    if (isLater && header.log === files.logId) return { ...published, segment: number, tip: undefined, floor: base };
  }
  return tenures !== undefined && tenures.writer === undefined
    ? { ...published, tip: undefined, floor: tip }
    : published;
}

/** True if neither the head nor the chain of tenures knows this segment. */
function isForeign(number: number, { tip, floor, tenures }: PublishedSegments): boolean {
  return number > (tenures?.segments ?? (tip ?? floor ?? emptyTip).segment);
}

async function openPublisher(
  files: LogFiles,
  mode: LogMode,
  { tenures }: PublishedSegments,
): Promise<LocalPublisher | SharePublisher> {
  if (mode === "local") return new LocalPublisher(files);
  const segments = (await existingSegments(files)).at(-1) ?? 0;
  // The chain may exist but be unreadable.
  if (tenures === undefined) await moveAside(files, `${files.directory}/tenures`);
  return await SharePublisher.openAsItIs(files, { initial: { tip: storedTip(emptyTip), segments, by: "" } });
}

interface Rewrite {
  readonly files: LogFiles;
  readonly published: PublishedSegments;
  readonly end: PublishedSegments;
  readonly segments: readonly ChainedSegment[];
  readonly publisher: LocalPublisher | SharePublisher;
  readonly signal: AbortSignal | undefined;
}

async function rewrite({ files, published, end, segments, publisher, signal }: Rewrite): Promise<RepairResult> {
  const least = Math.max((await existingSegments(files)).at(-1) ?? 0, published.segment) + 1;
  const rewriting = publisher.rewriting();
  let rewriter: Rewriter | undefined;
  const begin = (after: Tip): Rewriter => (rewriter ??= new Rewriter(files, rewriting, after, least));
  const context: CheckContext = {
    files,
    logId: files.logId,
    findings: new Findings(),
    signal,
    onBytes: () => undefined,
    onRest: (bytes, line, good) => begin(good).add(copyOf(bytes), line.first),
  };
  let state: CheckState = startOf(files.directory);
  for (const segment of segments) state = await checkSegment(context, segment, state);
  const { good, isGood, position } = state;
  // If the extent of the damage is unknown, at least one event was lost.
  const known = Math.max(published.tip?.position ?? 0, published.floor?.position ?? 0, position ?? good.position + 1);
  if (!isGood || known > good.position) {
    await begin(good.tip).fillUpTo(known);
    const { position: last } = await begin(good.tip).finish();
    return { lost: begin(good.tip).lost, position: last };
  }
  const isPublished = published.tip === undefined ? end === published : isEqualTip(published.tip, good.tip);
  if (!isPublished) await rewriting.publish(good.tip);
  return { lost: 0, position: good.position };
}

// Repairs a log under its gate. A missing record is made anew from the segments, foreign segments
// are moved aside, and from the first damage on all whole lines are written again. Nothing is
// deleted.
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
import { findPublished, findSegments, segmentsThere, type Published, type ChainedSegment } from "./published.ts";
import { Rewriter } from "./rewriter.ts";
import { startOf, checkSegment, type CheckContext, type CheckState } from "./segment-check.ts";

export interface Repaired {
  /** How many events are lost. */
  readonly lost: number;
  readonly position: number;
}

/** Undefined when the id of the log cannot be found out. LOCK_LOST. */
export async function repairLog(found: LogFiles, mode: LogMode, signal?: AbortSignal): Promise<Repaired | undefined> {
  const place = await identify(found, mode);
  if (place === undefined) return undefined;
  const published = await findPublished(place, mode, new Findings());
  const end = await findEnd(place, published);
  const segments = await findSegments(place, end, new Findings());
  for (const number of await segmentsThere(place))
    if (isForeign(number, published) && !segments.some((segment) => segment.number === number))
      await moveAside(place, segmentPath(place.directory, number));
  const publisher = await openPublisher(place, mode, published);
  try {
    return await rewrite({ place, published, end, segments, signal, publisher });
  } finally {
    await publisher.close();
  }
}

/**
 * Makes the record of the log anew if it is missing or damaged and all segments name the same log.
 */
async function identify(place: LogFiles, mode: LogMode): Promise<LogFiles | undefined> {
  const { ground, directory, staging } = place;
  const known = await new Findings().attempt({ path: directory }, "", () => findLog(place.disk, directory));
  const headers = await headersOf(place);
  const [id, ...others] = new Set(known === undefined ? headers.map(({ log }) => log) : [known.id]);
  if (id === undefined || others.length > 0) return undefined;
  if (known === undefined) {
    // It may exist and be unreadable.
    await moveAside(place, `${directory}/log.json`);
    await decideLog(staging, directory, { id, mode, ...recordedGround(directory, place.ground) });
  }
  const { isSynced, segmentBytesMax } = place;
  return new LogFiles(ground, directory, id, { isSynced, segmentBytesMax });
}

async function headersOf(place: LogFiles): Promise<OpenedHeader[]> {
  const headers: OpenedHeader[] = [];
  for (const number of await segmentsThere(place)) {
    const header = await findHeader(place, number);
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
 * Where the log ends if all whole lines count. That may be in a later segment, if the head or the
 * tenures were replaced by older ones; or behind the tip, if no writer was at work that could have
 * written lines that do not count.
 */
async function findEnd(place: LogFiles, published: Published): Promise<Published> {
  const { tip, floor, tenures } = published;
  const base = tip ?? floor ?? emptyTip;
  for (const number of (await segmentsThere(place)).reverse()) {
    if (!isForeign(number, published)) break;
    const header = await findHeader(place, number);
    const isLater = header !== undefined && header.after.segment < number && header.after.position >= base.position;
    if (isLater && header.log === place.logId) return { ...published, segment: number, tip: undefined, floor: base };
  }
  return tenures !== undefined && tenures.writer === undefined
    ? { ...published, tip: undefined, floor: tip }
    : published;
}

/** Whether neither the head nor the tenures know of this segment. */
function isForeign(number: number, { tip, floor, tenures }: Published): boolean {
  return number > (tenures?.segments ?? (tip ?? floor ?? emptyTip).segment);
}

async function openPublisher(
  place: LogFiles,
  mode: LogMode,
  { tenures }: Published,
): Promise<LocalPublisher | SharePublisher> {
  if (mode === "local") return new LocalPublisher(place);
  const segments = (await segmentsThere(place)).at(-1) ?? 0;
  // It may exist and be unreadable.
  if (tenures === undefined) await moveAside(place, `${place.directory}/tenures`);
  return await SharePublisher.openAsItIs(place, { initial: { tip: storedTip(emptyTip), segments, by: "" } });
}

interface Rewrite {
  readonly place: LogFiles;
  readonly published: Published;
  readonly end: Published;
  readonly segments: readonly ChainedSegment[];
  readonly publisher: LocalPublisher | SharePublisher;
  readonly signal: AbortSignal | undefined;
}

async function rewrite({ place, published, end, segments, publisher, signal }: Rewrite): Promise<Repaired> {
  const least = Math.max((await segmentsThere(place)).at(-1) ?? 0, published.segment) + 1;
  const rewriting = publisher.rewriting();
  let rewriter: Rewriter | undefined;
  const begin = (after: Tip): Rewriter => (rewriter ??= new Rewriter(place, rewriting, after, least));
  const context: CheckContext = {
    place,
    logId: place.logId,
    findings: new Findings(),
    signal,
    onBytes: () => undefined,
    onRest: (bytes, line, good) => begin(good).add(copyOf(bytes), line.first),
  };
  let state: CheckState = startOf(place.directory);
  for (const segment of segments) state = await checkSegment(context, segment, state);
  const { good, isGood, position } = state;
  // Damage of unknown extent was one event at least.
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

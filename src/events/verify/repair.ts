// Mending a log, with the gate in hand: what is missing and can be told from the rest is made anew, what does not belong to it is moved aside, and from the first damage on all that
// is whole is written again. Nothing is deleted.
import { isHoldfastError } from "../../errors.ts";
import type { LogMode } from "../model/event-store.ts";
import { copyOf } from "../log/format/segment.ts";
import { LocalPublisher } from "../log/publish/local-publisher.ts";
import { decideLog, findLog } from "../log/format/log-record.ts";
import { LogFiles } from "../log/log-files.ts";
import { readHeader, segmentPath, type OpenedHeader } from "../log/format/segment.ts";
import { SharePublisher } from "../log/publish/share-publisher.ts";
import { emptyTip, isEqualTip, storedTip, type Tip } from "../log/format/tip.ts";
import { moveAside } from "./aside.ts";
import { Findings } from "../../part/findings.ts";
import { findPublished, segmentsThere, type Published } from "./published.ts";
import { Rewriter } from "./rewriter.ts";
import { checkSegment, type Checking } from "./segment-check.ts";
import { beginningOf, type CheckpointState } from "./checkpoint-check.ts";
import { findWay, type Stop } from "./segment-order.ts";

export interface Mended {
  /** How many events could not be kept. */
  readonly lost: number;
  readonly position: number;
}

/** Undefined when it cannot be told which log this is. LOCK_LOST. */
export async function mendLog(found: LogFiles, mode: LogMode, signal?: AbortSignal): Promise<Mended | undefined> {
  const place = await identify(found, mode);
  if (place === undefined) return undefined;
  const published = await findPublished(place, mode, new Findings());
  const end = await findEnd(place, published);
  const way = await findWay(place, end, new Findings());
  for (const number of await segmentsThere(place))
    if (isForeign(number, published) && !way.some((stop) => stop.number === number))
      await moveAside(place, segmentPath(place.directory, number));
  const publisher = await openPublisher(place, mode, published);
  try {
    return await rewrite({ place, published, end, way, signal, publisher });
  } finally {
    await publisher.close();
  }
}

/** With the record of the log, which is made anew if all segments agree on whose they are. */
async function identify(place: LogFiles, mode: LogMode): Promise<LogFiles | undefined> {
  const { ground, directory, staging } = place;
  const known = await new Findings().attempt({ path: directory }, "", () => findLog(place.disk, directory));
  const headers = await headersOf(place);
  const [id, ...others] = new Set(known === undefined ? headers.map(({ log }) => log) : [known.id]);
  if (id === undefined || others.length > 0) return undefined;
  if (known === undefined) {
    // One that is there and cannot be read.
    await moveAside(place, `${directory}/log.json`);
    await decideLog(staging, directory, { id, mode });
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
 * Where the log ends if all counts that is whole: in a later segment of this log, where what says how far it goes was put back. And behind the tip, where nobody was at work who could have
 * written there what does not count.
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

/** Whether nothing that says how far the log goes knows of this segment. */
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
  // One that is there and cannot be read.
  if (tenures === undefined) await moveAside(place, `${place.directory}/tenures`);
  return await SharePublisher.openAsItIs(place, { initial: { tip: storedTip(emptyTip), segments, by: "" } });
}

interface Rewrite {
  readonly place: LogFiles;
  readonly published: Published;
  readonly end: Published;
  readonly way: readonly Stop[];
  readonly publisher: LocalPublisher | SharePublisher;
  readonly signal: AbortSignal | undefined;
}

async function rewrite({ place, published, end, way, publisher, signal }: Rewrite): Promise<Mended> {
  const least = Math.max((await segmentsThere(place)).at(-1) ?? 0, published.segment) + 1;
  const rewriting = publisher.rewriting();
  let rewriter: Rewriter | undefined;
  const begin = (after: Tip): Rewriter => (rewriter ??= new Rewriter(place, rewriting, after, least));
  const checking: Checking = {
    place,
    logId: place.logId,
    findings: new Findings(),
    signal,
    onBytes: () => undefined,
    onRest: (bytes, line, good) => begin(good).add(copyOf(bytes), line.first),
  };
  let standing: CheckpointState = beginningOf(place.directory);
  for (const stop of way) standing = await checkSegment(checking, stop, standing);
  const { good, isGood, position } = standing;
  // What nobody counted was one event at least.
  const told = Math.max(published.tip?.position ?? 0, published.floor?.position ?? 0, position ?? good.position + 1);
  if (!isGood || told > good.position) {
    await begin(good.tip).fillUpTo(told);
    const { position: last } = await begin(good.tip).finish();
    return { lost: begin(good.tip).lost, position: last };
  }
  const isPublished = published.tip === undefined ? end === published : isEqualTip(published.tip, good.tip);
  if (!isPublished) await rewriting.publish(good.tip);
  return { lost: 0, position: good.position };
}

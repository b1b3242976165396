// Reads and exports a log that is too damaged to open, up to a position before the damage.
import type { SequencedEvent } from "../../common.ts";
import { plainCodec, type EventCodec } from "../model/codec.ts";
import type { LogMode, ReadOptions } from "../model/event-store.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { contentOf, type Line } from "../log/format/line.ts";
import { Retags } from "../log/read/retags.ts";
import { matches, type Items } from "../model/query.ts";
import { TimeWindow } from "../model/time-window.ts";
import { Findings } from "../../part/findings.ts";
import type { LogFiles } from "../log/log-files.ts";
import { findPublished, findSegments } from "../verify/published.ts";
import { checkSegment, startOf, type CheckState } from "../verify/segment-check.ts";
import type { UnopenedLog } from "../verify/unopened.ts";
import { exportLines, type TransferOptions, type StoredLine } from "./export.ts";

/** Options of `salvageEvents`. */
export interface SalvageOptions extends ReadOptions {
  /** Reads events up to this position. Everything before it must be intact. */
  upTo: number;
}

/** Exports all appends that end at `upTo` or before. Throws CORRUPT if there is damage before `upTo`. */
export async function* exportUpTo(
  log: UnopenedLog,
  { upTo, ...options }: TransferOptions & { readonly upTo: number },
): AsyncGenerator<string, void> {
  // Reads the log twice: an export starts with its last position, and only the lines show where appends end.
  let position = 0;
  for await (const chunk of linesUpTo(log, upTo, options.signal))
    for (const { line } of chunk) if (lastOf(line) <= upTo) position = lastOf(line);
  const chunks = linesUpTo(log, position, options.signal);
  yield* exportLines(log.files.logId, position, storedLinesOf(chunks), options);
}

async function* storedLinesOf(chunks: AsyncIterable<readonly GoodLine[]>): AsyncGenerator<readonly StoredLine[], void> {
  for await (const chunk of chunks)
    yield chunk.map(({ bytes, line: { first, events } }) => ({ ...contentOf(bytes), first, events: events.length }));
}

/**
 * Yields the events before the damage, like `EventStore.read`, then throws `damage` if the caller
 * wants later ones. Backwards, the later ones come first, so it throws at once.
 */
export async function* readSound(
  log: UnopenedLog,
  items: Items,
  options: ReadOptions,
  { codec, damage }: { readonly codec: EventCodec; readonly damage: unknown },
): AsyncGenerator<SequencedEvent, void> {
  const { upTo = Infinity, limit = Infinity, backwards = false, signal } = options;
  let good = 0;
  try {
    for await (const chunk of linesUpTo(log, Infinity, signal)) for (const { line } of chunk) good = lastOf(line);
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
  }
  // Without the head, damage in the last lines looks like the end. The log did not open, so it is not the end.
  const isCut = upTo > good;
  if (backwards && isCut) throw damage;
  let count = 0;
  for await (const event of readUpTo(log, items, { ...options, upTo: Math.min(upTo, good) }, codec)) {
    yield event;
    count++;
  }
  if (isCut && count < limit) throw damage;
}

/** By default, yields events as a store without schemas and keys returns them. Throws CORRUPT if there is damage before `upTo`. */
export async function* readUpTo(
  log: UnopenedLog,
  items: Items,
  { after = 0, upTo, backwards = false, limit = Infinity, signal, ...times }: SalvageOptions,
  codec: EventCodec = plainCodec,
): AsyncGenerator<SequencedEvent, void> {
  const window = TimeWindow.of(times);
  const retags = new Retags();
  for await (const chunk of linesUpTo(log, upTo, signal))
    for (const { line } of chunk) if (line.retag !== undefined) retags.add(line.retag);
  const found: SequencedEvent[] = [];
  let left = limit;
  for await (const chunk of linesUpTo(log, upTo, signal))
    for (const { line } of chunk.filter((each) => window?.has(each.line.time) !== false))
      for (const event of await eventsOf(line, retags, codec)) {
        if (event.position <= after || event.position > upTo || !matches(items, event)) continue;
        if (backwards) found.push(event);
        else if (left-- > 0) yield event;
        else return;
      }
  yield* found.reverse().slice(0, limit);
}

async function eventsOf(
  { first, time, events, payload }: Line,
  retags: Retags,
  codec: EventCodec,
): Promise<SequencedEvent[]> {
  return await Promise.all(
    events.map(async (head, index) => {
      const position = first + index;
      const { untranslated, ...body } = await codec.decode(head, payload[index] ?? { data: null });
      const { type, id } = head;
      return { type, ...body, tags: retags.tagsOf(position, head.tags), id, position, time, ...untranslated };
    }),
  );
}

/** Yields all lines up to `upTo`, including tags that were added before the next event. Ignores damage after that. */
async function* linesUpTo(
  { files, mode }: UnopenedLog,
  upTo: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly GoodLine[], void> {
  let last = 0;
  try {
    for await (const chunk of goodLines(files, mode, signal)) {
      const within = chunk.filter(({ line }) => Math.min(line.first, lastOf(line)) <= upTo);
      yield within;
      for (const { line } of within) last = lastOf(line);
      if (within.length < chunk.length) return;
    }
  } catch (error) {
    if (last < upTo || !isHoldfastError(error, "CORRUPT")) throw error;
  }
}

/** For a line without events: the position before it. */
function lastOf({ first, events }: Pick<Line, "first" | "events">): number {
  return first + events.length - 1;
}

interface GoodLine {
  readonly bytes: Uint8Array;
  readonly line: Line;
}

/**
 * Yields the lines before the first damage, in order, a segment at a time. Throws CORRUPT after
 * them if there is damage.
 */
async function* goodLines(
  files: LogFiles,
  mode: LogMode,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly GoodLine[], void> {
  const findings = new Findings();
  const segments = await findSegments(files, await findPublished(files, mode, findings), findings);
  let state: CheckState = startOf(files.directory);
  for (const segment of segments) {
    const lines: GoodLine[] = [];
    const onGood = (bytes: Uint8Array, line: Line): void => void lines.push({ bytes: Uint8Array.from(bytes), line });
    const context = { files, logId: files.logId, findings, signal, onBytes: () => undefined, onGood };
    state = await checkSegment(context, segment, state);
    yield lines;
    if (!state.isGood) break;
  }
  if (!findings.hasDamage) return;
  const { path } = state.good;
  const message = `${files.directory} is damaged after position ${state.good.position} (last good in ${path}). As it is, only the events up to there can be read (--up-to ${state.good.position}). \`holdfast events verify\` reports what is wrong, and with --repair keeps what is intact.`;
  throw holdfastError("CORRUPT", message, { path });
}

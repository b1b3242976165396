// What can be had of a log that is too damaged to be opened: its events and its lines, up to a position before the damage.
import type { SequencedEvent } from "../../common.ts";
import { plainCodec } from "../model/codec.ts";
import type { ReadOptions } from "../model/event-store.ts";
import { isHoldfastError } from "../../errors.ts";
import { contentOf, type Line } from "../log/format/line.ts";
import { Retags } from "../log/read/retags.ts";
import { matches, type Items } from "../model/query.ts";
import { goodLines, type GoodLine } from "../verify/good-lines.ts";
import type { UnopenedLog } from "../verify/unopened.ts";
import { exportLines, type TransferOptions } from "./export.ts";
import type { StoredLine } from "./stored-lines.ts";

export interface SalvageOptions extends ReadOptions {
  /** Everything up to there must be whole. */
  upTo: number;
}

/** As an export of the whole log, of all appends that end at `upTo` or before. CORRUPT when there is damage before it. */
export async function* exportUpTo(
  log: UnopenedLog,
  { upTo, ...options }: TransferOptions & { readonly upTo: number },
): AsyncGenerator<string, void> {
  // Twice through the log: an export begins with its last position, and that of an append can be told only by its line.
  let position = 0;
  for await (const chunk of linesUpTo(log, upTo, options.signal))
    for (const { line } of chunk) if (lastOf(line) <= upTo) position = lastOf(line);
  const chunks = linesUpTo(log, position, options.signal);
  yield* exportLines(log.place.logId, position, storedLinesOf(chunks), options);
}

async function* storedLinesOf(chunks: AsyncIterable<readonly GoodLine[]>): AsyncGenerator<readonly StoredLine[], void> {
  for await (const chunk of chunks)
    yield chunk.map(({ bytes, line: { first, events } }) => ({ ...contentOf(bytes), first, events: events.length }));
}

/** Events as a store without schemas and keys gives them. CORRUPT when there is damage before `upTo`. */
export async function* readUpTo(
  log: UnopenedLog,
  items: Items,
  { after = 0, upTo, backwards = false, limit = Infinity, signal }: SalvageOptions,
): AsyncGenerator<SequencedEvent, void> {
  const retags = new Retags();
  for await (const chunk of linesUpTo(log, upTo, signal))
    for (const { line } of chunk) if (line.retag !== undefined) retags.add(line.retag);
  const found: SequencedEvent[] = [];
  let left = limit;
  for await (const chunk of linesUpTo(log, upTo, signal))
    for (const { line } of chunk)
      for (const event of await eventsOf(line, retags)) {
        if (event.position <= after || event.position > upTo || !matches(items, event)) continue;
        if (backwards) found.push(event);
        else if (left-- > 0) yield event;
        else return;
      }
  yield* found.reverse().slice(0, limit);
}

async function eventsOf({ first, time, events, payload }: Line, retags: Retags): Promise<SequencedEvent[]> {
  return await Promise.all(
    events.map(async (head, index) => {
      const position = first + index;
      const { untranslated, ...body } = await plainCodec.decode(head, payload[index] ?? { data: null });
      const { type, id } = head;
      return { type, ...body, tags: retags.tagsOf(position, head.tags), id, position, time, ...untranslated };
    }),
  );
}

/** All that happened up to there, also tags that were added before the next event. Damage behind it is nobody's concern here. */
async function* linesUpTo(
  { place, mode }: UnopenedLog,
  upTo: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly GoodLine[], void> {
  let last = 0;
  try {
    for await (const chunk of goodLines(place, mode, signal)) {
      const within = chunk.filter(({ line }) => Math.min(line.first, lastOf(line)) <= upTo);
      yield within;
      for (const { line } of within) last = lastOf(line);
      if (within.length < chunk.length) return;
    }
  } catch (error) {
    if (last < upTo || !isHoldfastError(error, "CORRUPT")) throw error;
  }
}

/** Of a line without events, the position before it. */
function lastOf({ first, events }: Pick<Line, "first" | "events">): number {
  return first + events.length - 1;
}

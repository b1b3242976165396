// Reads events: finds them by the index, reads their lines, and decodes them for the user.
import { types } from "node:util";
import type { SequencedEvent } from "../../../common.ts";
import { EventLoopYield } from "../../../durable/wait/event-loop-yield.ts";
import type { EventCodec } from "../../model/codec.ts";
import type { LineAddress, PositionRange } from "../../index/keys/indexed-line.ts";
import { matches, type Items } from "../../model/query.ts";
import { LineReader } from "./line-reader.ts";
import type { EventBody, EventHead } from "../../model/stored-event.ts";
import type { LogFiles } from "../log-files.ts";
import { damaged, lineOf, scanPublished } from "./scan.ts";
import { readHeader, segmentPath } from "../format/segment.ts";
import type { LogView } from "./view.ts";

/** An event as stored. */
export interface StoredEvent {
  readonly position: number;
  readonly time: string;
  /** With tags that were added later. */
  readonly head: EventHead;
  /** The tags that it was appended with. */
  readonly ownTags: readonly string[];
  readonly body: EventBody;
}

/** Events per list of a scan. The first list has one event, so that a caller that wants few pays for few. */
const listLengthMax = 256;

export class EventReader {
  readonly #files: LogFiles;
  readonly #view: LogView;
  readonly #codec: EventCodec;
  readonly #lines: LineReader;

  constructor(files: LogFiles, view: LogView, codec: EventCodec) {
    this.#files = files;
    this.#view = view;
    this.#codec = codec;
    this.#lines = new LineReader(files);
  }

  /** `position` must be within the view. */
  async get(position: number): Promise<StoredEvent> {
    const address = await this.#view.getLine(position);
    const { first, time, events, payload } = await this.#lines.take(address, position);
    const [head, body] = [events[position - first], payload[position - first]];
    if (head === undefined || body === undefined)
      throw damaged(segmentPath(this.#files.directory, address.segment), address.offset);
    return { position, time, head: this.#withTags(position, head), ownTags: head.tags, body };
  }

  /** Returns the checksum of the line with this position. */
  async checksumAt(position: number): Promise<number> {
    return (await this.#lines.get(await this.#view.getLine(position))).crc;
  }

  async *read(items: Items, range: PositionRange, backwards: boolean): AsyncGenerator<StoredEvent, void> {
    for await (const list of this.readLists(items, range, backwards)) for (const event of list) yield event;
  }

  /** Yields lists of any length: one generator step per event would add a third to its cost. */
  async *readLists(
    items: Items,
    range: PositionRange,
    backwards: boolean,
  ): AsyncGenerator<readonly StoredEvent[], void> {
    if (range.after >= range.upTo) return;
    const all = items.some(({ types, tags }) => types.length === 0 && tags.length === 0);
    if (all && !backwards) return yield* this.#scan(range);
    const loopYield = new EventLoopYield(this.#files.ground.ports.clock);
    for await (const position of this.#view.candidates(items, range, backwards)) {
      if (loopYield.isDue) await loopYield.take();
      const event = await this.get(position);
      // Compare with the event: the index compares only hashes.
      if (matches(items, event.head)) yield [event];
    }
  }

  decode({ position, time, head, body }: StoredEvent): SequencedEvent | Promise<SequencedEvent> {
    const { type, tags, id } = head;
    const decoded = this.#codec.decode(head, body);
    const make = ({ data, metadata, untranslated }: Awaited<typeof decoded>): SequencedEvent => {
      const event = { type, data, tags, metadata, id, position, time };
      return untranslated === undefined ? event : Object.assign(event, untranslated);
    };
    return types.isPromise(decoded) ? decoded.then(make) : make(decoded);
  }

  async close(): Promise<void> {
    await this.#lines.close();
  }

  /**
   * Yields all events of a range in one pass over the files. This is many times faster than reading them one by one.
   */
  async *#scan({ after, upTo }: PositionRange): AsyncGenerator<readonly StoredEvent[], void> {
    const { disk, directory } = this.#files;
    const { tip, segments } = this.#view;
    const loopYield = new EventLoopYield(this.#files.ground.ports.clock);
    const begin = await this.#view.getLine(after + 1);
    let list: StoredEvent[] = [];
    let listLength = 1;
    const parts = [
      ...segments.filter(({ number }) => number < tip.segment),
      { number: tip.segment, length: tip.length },
    ];
    for (const { number, length } of parts.filter(({ number }) => number >= begin.segment)) {
      const path = segmentPath(directory, number);
      const start = await (number === begin.segment ? this.#startAt(begin) : this.#startOf(number));
      for await (const lines of scanPublished(disk, directory, { segment: number, to: length, ...start })) {
        for (const line of lines) {
          if (loopYield.isDue) await loopYield.take();
          const { first, time, events, payload } = lineOf(path, line);
          for (const [index, head] of events.entries()) {
            const position = first + index;
            if (position <= after) continue;
            // Stop here: damage after `upTo` must not fail this read.
            if (position > upTo) return yield list;
            const body = payload[index];
            if (body !== undefined)
              list.push({ position, time, head: this.#withTags(position, head), ownTags: head.tags, body });
            if (position === upTo) return yield list;
            if (list.length < listLength) continue;
            yield list;
            list = [];
            listLength = Math.min(2 * listLength, listLengthMax);
          }
        }
        // Yield before the next lines are read: if those are damaged, the caller has all events before them.
        yield list;
        list = [];
      }
    }
  }

  /** The checksum of the previous line seeds that of the line. */
  async #startAt(address: LineAddress): Promise<{ from: number; crc: number }> {
    return { from: address.offset, crc: await this.#lines.seedOf(address) };
  }

  async #startOf(segment: number): Promise<{ from: number; crc: number }> {
    const { bytes, crc } = await readHeader(this.#files.disk, this.#files.directory, segment);
    return { from: bytes, crc };
  }

  #withTags(position: number, head: EventHead): EventHead {
    const tags = this.#view.retags.tagsOf(position, head.tags);
    return tags === head.tags ? head : { ...head, tags };
  }
}

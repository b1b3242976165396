// Events by their position: found by the index, read from their line, and given back as the user knows them.
import type { SequencedEvent } from "../../../common.ts";
import type { EventCodec } from "../../model/codec.ts";
import type { LinePlace, Range } from "../../index/indexed-line.ts";
import { matches, type Items } from "../../model/query.ts";
import { EventLoopYield } from "../../../durable/wait/event-loop-yield.ts";
import { LineReader } from "./line-reader.ts";
import type { EventBody, EventHead } from "../format/line.ts";
import type { LogFiles } from "../log-files.ts";
import { damaged, lineOf, scanPublished } from "./scan.ts";
import { readHeader, segmentPath } from "../format/segment.ts";
import type { LogView } from "./view.ts";

/** One event as it is stored. */
export interface StoredEvent {
  readonly position: number;
  readonly time: string;
  /** With the tags that were added later. */
  readonly head: EventHead;
  /** Those that it was appended with. */
  readonly ownTags: readonly string[];
  readonly body: EventBody;
}

/** How many events a scan gives at a time at most. It begins with one: who wants only a few pays for few. */
const listLengthMax = 256;

export class EventReader {
  readonly #place: LogFiles;
  readonly #view: LogView;
  readonly #codec: EventCodec;
  readonly #lines: LineReader;

  constructor(place: LogFiles, view: LogView, codec: EventCodec) {
    this.#place = place;
    this.#view = view;
    this.#codec = codec;
    this.#lines = new LineReader(place);
  }

  /** `position` must be within the view. */
  async get(position: number): Promise<StoredEvent> {
    const place = await this.#view.placeOf(position);
    const { first, time, events, payload } = await this.#lines.take(place, position);
    const [head, body] = [events[position - first], payload[position - first]];
    if (head === undefined || body === undefined)
      throw damaged(segmentPath(this.#place.directory, place.segment), place.offset);
    return { position, time, head: this.#withTags(position, head), ownTags: head.tags, body };
  }

  /** Of the line that has this position. */
  async checksumAt(position: number): Promise<number> {
    return (await this.#lines.get(await this.#view.placeOf(position))).crc;
  }

  async *read(items: Items, range: Range, backwards: boolean): AsyncGenerator<StoredEvent, void> {
    for await (const list of this.readLists(items, range, backwards)) for (const event of list) yield event;
  }

  /** In lists of any length: a step from one generator to another costs a third of an event. */
  async *readLists(items: Items, range: Range, backwards: boolean): AsyncGenerator<readonly StoredEvent[], void> {
    if (range.after >= range.upTo) return;
    const all = items.some(({ types, tags }) => types.length === 0 && tags.length === 0);
    if (all && !backwards) return yield* this.#scan(range);
    const breath = new EventLoopYield(this.#place.ground.ports.clock);
    for await (const position of this.#view.candidates(items, range, backwards)) {
      if (breath.isDue) await breath.take();
      const event = await this.get(position);
      // The index goes by hashes.
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
    return decoded instanceof Promise ? decoded.then(make) : make(decoded);
  }

  async close(): Promise<void> {
    await this.#lines.close();
  }

  /** All events of a range in one go through the files: many times as fast as one by one. */
  async *#scan({ after, upTo }: Range): AsyncGenerator<readonly StoredEvent[], void> {
    const { disk, directory } = this.#place;
    const { tip, segments } = this.#view;
    const breath = new EventLoopYield(this.#place.ground.ports.clock);
    const begin = await this.#view.placeOf(after + 1);
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
          if (breath.isDue) await breath.take();
          const { first, time, events, payload } = lineOf(path, line);
          for (const [index, head] of events.entries()) {
            const position = first + index;
            if (position <= after) continue;
            // Not a line further: damage behind what was asked for is nobody's concern here.
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
        // Before the next lines are looked at: if they are damaged, all that was before them is still had.
        yield list;
        list = [];
      }
    }
  }

  /** The line before tells the seed, and so does the header. */
  async #startAt(place: LinePlace): Promise<{ from: number; crc: number }> {
    return { from: place.offset, crc: await this.#lines.seedOf(place) };
  }

  async #startOf(segment: number): Promise<{ from: number; crc: number }> {
    const { bytes, crc } = await readHeader(this.#place.disk, this.#place.directory, segment);
    return { from: bytes, crc };
  }

  #withTags(position: number, head: EventHead): EventHead {
    const tags = this.#view.retags.tagsOf(position, head.tags);
    return tags === head.tags ? head : { ...head, tags };
  }
}

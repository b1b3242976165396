// Rewrites a damaged log from the damage on. Whole events keep their positions; events of a special
// type replace the lost ones.
import { makeUuid } from "../../format/uuid.ts";
import { encodeSegment, type CopiedLine } from "../log/format/segment.ts";
import { encodeContent } from "../log/format/line.ts";
import type { LogFiles } from "../log/log-files.ts";
import type { LogRewrite } from "../log/publish/publisher.ts";
import { publishSegment } from "../log/format/segment.ts";
import type { Tip } from "../log/format/tip.ts";

/** The type of the events that replace lost ones. */
export const lostType = "holdfast:lost";
const lostInLineMax = 1000;

export class Rewriter {
  readonly #place: LogFiles;
  readonly #rewriting: LogRewrite;
  /** The lowest free segment number. */
  readonly #least: number;
  /** The end of the last segment written; at first, the end of the undamaged part. */
  #tip: Tip;
  #lines: CopiedLine[] = [];
  #bytes = 0;
  #position: number;
  lost = 0;

  constructor(place: LogFiles, rewriting: LogRewrite, after: Tip, least: number) {
    this.#place = place;
    this.#rewriting = rewriting;
    this.#tip = after;
    this.#position = after.position;
    this.#least = least;
  }

  /** Adds a whole line at its original position. Skips a line that occurs twice. */
  async add(line: CopiedLine, first: number): Promise<void> {
    if (first <= this.#position) return;
    await this.fillUpTo(first - 1);
    await this.#write(line);
  }

  /**
   * Fills the gap up to `position` with events that mark lost ones. Every position gets exactly one event: readers
   * and checkpoints rely on that.
   */
  async fillUpTo(position: number): Promise<void> {
    while (this.#position < position) {
      const count = Math.min(position - this.#position, lostInLineMax);
      this.lost += count;
      await this.#write(this.#lostLine(count));
    }
  }

  /** Returns the new end of the log. */
  async finish(): Promise<Tip> {
    await this.#flush();
    await this.#rewriting.publish(this.#tip);
    return this.#tip;
  }

  async #write(line: CopiedLine): Promise<void> {
    this.#lines.push(line);
    this.#bytes += line.content.length;
    this.#position += line.events.length;
    if (this.#bytes >= this.#place.segmentBytesMax) await this.#flush();
  }

  async #flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    const number = await this.#rewriting.next(this.#least);
    const { staging, directory } = this.#place;
    const { bytes, tip } = encodeSegment(this.#place.newHeader(number, this.#tip), this.#lines);
    if (!(await publishSegment(staging, directory, number, bytes)))
      throw new Error(`The segment number ${number} is not free.`);
    [this.#tip, this.#lines, this.#bytes] = [tip, [], 0];
  }

  #lostLine(count: number): CopiedLine {
    const { clock, random } = this.#place.ground.ports;
    const events = Array.from({ length: count }, () => ({
      type: lostType,
      tags: [],
      id: makeUuid(clock.wallMs(), random.bytes(16)),
    }));
    const content = encodeContent({ events, payload: events.map(() => '{"data":null}') });
    return { events, content, time: new Date(clock.wallMs()).toISOString() };
  }
}

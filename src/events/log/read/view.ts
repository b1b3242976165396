// What this process knows of the log: it follows the published tip, line by line, and finds positions by type, tag and id.
import { Fifo } from "../../../durable/wait/fifo.ts";
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { ActiveIndex } from "../../index/memory/active-index.ts";
import type { IndexedLine, LinePlace, Range, SealedSegment } from "../../index/indexed-line.ts";
import { SealedIndexes } from "../../index/sealed-indexes.ts";
import type { Items } from "../../model/query.ts";
import { readLine, type ReadLine } from "../format/line-keys.ts";
import type { LogFiles } from "../log-files.ts";
import { EventLoopYield } from "../../../durable/wait/event-loop-yield.ts";
import { Retags } from "./retags.ts";
import { damaged, scanPublished, standsIn, type RawLine } from "./scan.ts";
import { listSegments, openSegment, readHeader, segmentPath, type OpenedHeader } from "../format/segment.ts";
import { emptyTip, hexOf, isBefore, isEqualTip, isSameTip, type Tip } from "../format/tip.ts";

/** How many headers are asked for at the same time when a log is opened. */
const headersAtOnce = 16;

/** How many indexes of sealed segments wait in memory to be written: a few megabytes each. */
const recentMax = 4;

export class LogView {
  readonly #place: LogFiles;
  readonly #sealed: SealedIndexes;
  readonly #turn = new Fifo();
  readonly retags: Retags = new Retags();
  readonly #segments: SealedSegment[] = [];
  /** What was just sealed: it answers until its index is written. */
  readonly #recent = new Map<number, ActiveIndex>();
  /** The position with which the segment begins that is still written to. */
  #begins = 1;
  #active = new ActiveIndex(1);
  #tip: Tip = emptyTip;
  /** From then on every line is read; before, those of sealed segments are passed over. */
  #hasRetags = false;

  /** `pause`: called often while indexes are made, so that others get their turn on the thread. */
  constructor(place: LogFiles, pause: () => Promise<void>) {
    this.#place = place;
    const { staging, directory, logId } = place;
    const scan = (segment: SealedSegment): AsyncIterable<IndexedLine> => this.scanSealed(segment);
    const findActive = (position: number): ActiveIndex | undefined => this.#findRecent(position);
    this.#sealed = new SealedIndexes({ staging, directory: `${directory}/index`, logId, scan, findActive, pause });
  }

  /** Those to which nothing is added any more, in order. */
  get segments(): readonly SealedSegment[] {
    return this.#segments;
  }

  /** How far everything here goes. */
  get tip(): Tip {
    return this.#tip;
  }

  /** Goes on to `tip`, which is published. One who is further already stays there. */
  async advance(tip: Tip): Promise<void> {
    if (this.#isAtLeastAt(tip)) return;
    await this.#turn.take();
    try {
      if (!this.#isAtLeastAt(tip)) await this.#advance(tip);
    } finally {
      this.#turn.give();
    }
  }

  /** Takes over what this process has published itself, from `from` to `to`, without reading it again. */
  addOwn(from: Tip, to: Tip, lines: readonly IndexedLine[]): void {
    // Somebody may have advanced meanwhile, or not yet to `from`: then it is read like anybody else's.
    if (!isSameTip(this.#tip, from) || !this.#turn.tryTake()) return;
    try {
      for (const line of lines) this.#active.add(line);
      this.#tip = to;
    } finally {
      this.#turn.give();
    }
  }

  /** True: no event after `after` matches. False: somebody has to look. Fast, because it asks only what is in memory. */
  isClear(items: Items, after: number): boolean {
    if (this.#active.hasCandidate(items, after)) return false;
    if (after < this.#begins - 1 && !this.#sealed.excludes(items, after)) return false;
    return this.retags.candidates(items, { after, upTo: this.#tip.position }).length === 0;
  }

  /** Positions that may match, in order. By hashes: the caller looks at the event itself. */
  async *candidates(items: Items, range: Range, backwards: boolean): AsyncGenerator<number, void> {
    const active = this.#active;
    const retagged = this.retags.candidates(items, range);
    const parts = [
      () =>
        this.#sealed.candidates(items, { after: range.after, upTo: Math.min(range.upTo, active.first - 1) }, backwards),
      () => active.candidates(items, range, backwards),
    ];
    let late = backwards ? [...retagged].reverse() : retagged;
    for (const part of backwards ? parts.reverse() : parts)
      for await (const position of part()) {
        while (late[0] !== undefined && (backwards ? late[0] > position : late[0] < position)) {
          yield late[0];
          late = late.slice(1);
        }
        if (late[0] === position) late = late.slice(1);
        yield position;
      }
    yield* late;
  }

  async *idCandidates(id: string): AsyncGenerator<number, void> {
    yield* this.#active.idCandidates(id);
    yield* this.#sealed.idCandidates(id);
  }

  async placeOf(position: number): Promise<LinePlace> {
    return position >= this.#begins ? this.#active.placeOf(position) : await this.#sealed.placeOf(position);
  }

  /** What an index of this segment is made of. */
  async *scanSealed(segment: SealedSegment): AsyncGenerator<IndexedLine, void> {
    for await (const { line } of this.#linesOf(segment)) yield line;
  }

  /** Makes the index files that are missing. Only a cache: what it cannot do now is done when somebody asks. */
  async buildIndexes(): Promise<void> {
    const newest = this.#segments.at(-1)?.number ?? 0;
    // Whoever sealed it makes its index, and the others of a crowd can wait for that. If it never comes, they make it when the next one is sealed.
    const butNewest = this.#recent.has(newest) && !this.#place.hasMade(this.#tip.segment);
    const built = [...this.#recent.keys()].filter((number) => !butNewest || number !== newest);
    await this.#sealed.build({ butNewest });
    for (const number of built) this.#recent.delete(number);
  }

  /** The next one who builds begins them again. */
  endMerges(): void {
    this.#sealed.endMerges();
  }

  async close(): Promise<void> {
    await this.#sealed.close();
  }

  async #advance(tip: Tip): Promise<void> {
    const isFresh = !this.#hasRetags;
    for (const header of await this.#wayTo(tip)) {
      const { segment, after, bytes, crc } = header;
      // To the end of the segment before, which nobody can move any more. One that was there when the log was opened has its index.
      if (!isFresh) await this.#scanTo(after);
      if (after.segment !== 0) this.#seal(after);
      this.#begins = after.position + 1;
      this.#active = new ActiveIndex(this.#begins);
      this.#tip = { ...after, segment, length: bytes, crc };
    }
    if (isFresh) await this.#findRetags();
    this.#hasRetags = true;
    await this.#scanTo(tip);
  }

  #isAtLeastAt(tip: Tip): boolean {
    if (isSameTip(this.#tip, tip) && !isEqualTip(this.#tip, tip)) throw this.#place.continuity.broken();
    // Positions never go back, and a segment is left for good: so this compares two moments of one log.
    return !isBefore(this.#tip, tip) && (this.#hasRetags || tip.segment === 0);
  }

  /** Headers of the segments after the known one, in order: each names the one before it. */
  async #wayTo(tip: Tip): Promise<OpenedHeader[]> {
    const { disk, directory, continuity } = this.#place;
    const fetched =
      tip.segment - this.#tip.segment > headersAtOnce ? await this.#fetchHeaders() : new Map<number, OpenedHeader>();
    const way: OpenedHeader[] = [];
    let end = tip;
    while (end.segment > this.#tip.segment) {
      const header = fetched.get(end.segment) ?? (await readHeader(disk, directory, end.segment));
      this.#mustReach(header, end);
      way.push(header);
      end = header.after;
    }
    // What was read here is a part of what counts for ever. Else this is another log than it was.
    if (end.segment !== this.#tip.segment) throw continuity.broken();
    continuity.mustFollow(this.#tip, end);
    return way.reverse();
  }

  /** CORRUPT for a segment of another log, and for one that is shorter than what counts of it: what comes after it would be read as if nothing were missing. */
  #mustReach({ log, segment, size }: OpenedHeader, end: Tip): void {
    const { directory, logId } = this.#place;
    const path = segmentPath(directory, segment);
    if (size < end.length) throw damaged(path, size);
    if (log === logId) return;
    const message = `${path} is of another log, ${log}. Restore the segment of this log from a backup.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  async #fetchHeaders(): Promise<Map<number, OpenedHeader>> {
    const { disk, directory } = this.#place;
    const numbers = (await listSegments(disk, directory)).filter((number) => number > this.#tip.segment);
    const headers = new Map<number, OpenedHeader>();
    for (let from = 0; from < numbers.length; from += headersAtOnce)
      await Promise.all(
        numbers.slice(from, from + headersAtOnce).map(async (number) => {
          // One that cannot be read matters only if it is on the way: then it is asked for again, and says so.
          const header = await readHeader(disk, directory, number).catch(() => undefined);
          if (header !== undefined) headers.set(number, header);
        }),
      );
    return headers;
  }

  #seal({ segment, length, position, crc }: Tip): void {
    const first = this.#begins;
    const sealed: SealedSegment = { number: segment, first, last: position, length, checksum: hexOf(crc) };
    this.#segments.push(sealed);
    const isKnown = this.#active.first === first && this.#active.last === position;
    if (isKnown && position >= first) this.#keep(segment);
    this.#sealed.add(sealed);
  }

  #findRecent(position: number): ActiveIndex | undefined {
    for (const index of this.#recent.values()) if (position >= index.first && position <= index.last) return index;
    return undefined;
  }

  #keep(segment: number): void {
    this.#recent.set(segment, this.#active);
    for (const oldest of this.#recent.keys()) if (this.#recent.size > recentMax) this.#recent.delete(oldest);
  }

  async #scanTo(end: Tip): Promise<void> {
    const { disk, directory } = this.#place;
    const { segment, length: from, crc } = this.#tip;
    const path = segmentPath(directory, segment);
    const breath = new EventLoopYield(this.#place.ground.ports.clock);
    try {
      for await (const lines of scanPublished(disk, directory, { segment, from, to: end.length, crc })) {
        this.#takeAll(path, lines);
        if (breath.isDue) await breath.take();
      }
      if (!isEqualTip(this.#tip, end)) throw damaged(path, from);
    } catch (error) {
      // Nothing is damaged if the line is another one to which this process had come.
      if (isHoldfastError(error, "CORRUPT") && !(await this.#stands({ length: from, crc })))
        throw this.#place.continuity.broken();
      throw error;
    }
    this.#tip = end;
  }

  async #stands(tip: Pick<Tip, "length" | "crc">): Promise<boolean> {
    const file = await openSegment(this.#place.disk, this.#place.directory, this.#tip.segment);
    try {
      // Where it is too short for it, that is what is wrong.
      return (await file.stat()).size < tip.length || (await standsIn(file, tip));
    } finally {
      await file.close();
    }
  }

  /** The tip goes along, whatever comes in between: a line that is taken twice does not follow. */
  #takeAll(path: string, lines: readonly RawLine[]): void {
    const { segment } = this.#tip;
    let last: RawLine | undefined;
    let { retagged } = this.#tip;
    try {
      for (const raw of lines) {
        const { line, retag } = readLine(segment, path, raw);
        this.#active.add(line);
        if (retag !== undefined) {
          this.retags.add(retag);
          retagged = segment;
        }
        last = raw;
      }
    } finally {
      if (last !== undefined) {
        const length = last.offset + last.bytes.length;
        this.#tip = { segment, length, position: this.#active.last, crc: last.crc, retagged };
      }
    }
  }

  /** Only of sealed segments: what comes after is read line by line. Each segment that has any leads to the one before. */
  async #findRetags(): Promise<void> {
    const { disk, directory } = this.#place;
    const numbers: number[] = [];
    for (let number = this.#tip.retagged; number !== 0;) {
      numbers.push(number);
      number = (await readHeader(disk, directory, number)).after.retagged;
    }
    // The oldest first: everybody shall see added tags in one order.
    for (const segment of this.#segments.filter(({ number }) => numbers.includes(number)))
      for await (const { retag } of this.#linesOf(segment)) if (retag !== undefined) this.retags.add(retag);
  }

  async *#linesOf({ number, length }: SealedSegment): AsyncGenerator<ReadLine, void> {
    const { disk, directory } = this.#place;
    const { bytes: from, crc } = await readHeader(disk, directory, number);
    for await (const lines of scanPublished(disk, directory, { segment: number, from, to: length, crc }))
      for (const line of lines) yield readLine(number, segmentPath(directory, number), line);
  }
}

// What this process knows of the log: it follows the published tip, line by line, and finds
// positions by type, tag and id.
import { EventLoopYield } from "../../../durable/wait/event-loop-yield.ts";
import { Fifo } from "../../../durable/wait/fifo.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { IndexedLine, LineAddress, PositionRange, SealedSegment } from "../../index/keys/indexed-line.ts";
import { ActiveIndex } from "../../index/memory/active-index.ts";
import { SealedIndexes } from "../../index/sealed-indexes.ts";
import type { Items } from "../../model/query.ts";
import { openSegment, readHeader, segmentPath } from "../format/segment.ts";
import { emptyTip, hexOf, isBefore, isEqualTip, isSameTip, type Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { headersBetween } from "./header-walk.ts";
import { readLine, type ReadLine } from "./line-keys.ts";
import { RecentIndexes } from "./recent-indexes.ts";
import { Retags } from "./retags.ts";
import { damaged, scanPublished, standsIn, type RawLine } from "./scan.ts";

export class LogView {
  readonly #files: LogFiles;
  readonly #sealed: SealedIndexes;
  readonly #turns = new Fifo();
  readonly retags: Retags = new Retags();
  readonly #segments: SealedSegment[] = [];
  readonly #recent = new RecentIndexes();
  /** The first position of the active segment. */
  #begins = 1;
  #active = new ActiveIndex(1);
  #tip: Tip = emptyTip;
  /**
   * False until the first advance. That one reads no lines of sealed segments, only their retags;
   * later ones read all.
   */
  #hasRetags = false;

  /** `pause`: called often while indexes are made; yields to others. */
  constructor(files: LogFiles, pause: () => Promise<void>) {
    this.#files = files;
    const { staging, directory, logId } = files;
    const scan = (segment: SealedSegment): AsyncIterable<IndexedLine> => this.scanSealed(segment);
    const findActive = (position: number): ActiveIndex | undefined => this.#recent.find(position);
    this.#sealed = new SealedIndexes({ staging, directory: `${directory}/index`, logId, scan, findActive, pause });
  }

  /** Sealed segments, in order. */
  get segments(): readonly SealedSegment[] {
    return this.#segments;
  }

  /** How far this view goes. */
  get tip(): Tip {
    return this.#tip;
  }

  /**
   * Goes on to `tip`, which is published. A view that is further already stays there. CORRUPT,
   * CLOSED.
   */
  async advance(tip: Tip): Promise<void> {
    if (this.#isAtLeastAt(tip)) return;
    await this.#turns.take();
    try {
      if (!this.#isAtLeastAt(tip)) await this.#advance(tip);
    } finally {
      this.#turns.give();
    }
  }

  /**
   * Adds lines that this process has published itself, from `from` to `to`, without reading them
   * again.
   */
  addOwn(from: Tip, to: Tip, lines: readonly IndexedLine[]): void {
    // Another caller may have advanced meanwhile, or not yet to `from`: then the lines are read
    // like any others.
    if (!isSameTip(this.#tip, from) || !this.#turns.tryTake()) return;
    try {
      for (const line of lines) this.#active.add(line);
      this.#tip = to;
    } finally {
      this.#turns.give();
    }
  }

  /**
   * True: no event after `after` matches. False: the caller has to look at the candidates. Fast:
   * asks memory only.
   */
  isClear(items: Items, after: number): boolean {
    if (this.#active.hasCandidate(items, after)) return false;
    if (after < this.#begins - 1 && !this.#sealed.excludes(items, after)) return false;
    return this.retags.candidates(items, { after, upTo: this.#tip.position }).length === 0;
  }

  /** Positions that may match, in order. By hashes: the caller compares each with its event. */
  async *candidates(items: Items, range: PositionRange, backwards: boolean): AsyncGenerator<number, void> {
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

  async getLine(position: number): Promise<LineAddress> {
    return position >= this.#begins ? this.#active.getLine(position) : await this.#sealed.getLine(position);
  }

  /** The lines that an index of this segment is made from. */
  async *scanSealed(segment: SealedSegment): AsyncGenerator<IndexedLine, void> {
    for await (const { line } of this.#linesOf(segment)) yield line;
  }

  /**
   * Makes missing index files. Only a cache: an index that is missing later is made when a reader
   * needs it.
   */
  async buildIndexes(): Promise<void> {
    const newest = this.#segments.at(-1)?.number ?? 0;
    // The process that sealed a segment makes its index. Others make it if it is still missing when
    // the next one is sealed.
    const butNewest = this.#recent.has(newest) && !this.#files.hasMade(this.#tip.segment);
    const built = this.#recent.segments.filter((number) => !butNewest || number !== newest);
    await this.#sealed.build({ butNewest });
    this.#recent.drop(built);
  }

  /** A later build begins them again. */
  endMerges(): void {
    this.#sealed.endMerges();
  }

  async close(): Promise<void> {
    await this.#sealed.close();
  }

  async #advance(tip: Tip): Promise<void> {
    const isFresh = !this.#hasRetags;
    for (const { segment, after, bytes, crc } of await headersBetween(this.#files, this.#tip, tip)) {
      // To the final end of the segment before. A segment that was sealed before the log was opened
      // has its index.
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
    if (isSameTip(this.#tip, tip) && !isEqualTip(this.#tip, tip)) throw this.#files.continuity.broken();
    // Within one log tips only move forward, so the later of two is the one that contains the
    // other.
    return !isBefore(this.#tip, tip) && (this.#hasRetags || tip.segment === 0);
  }

  #seal({ segment, length, position, crc }: Tip): void {
    const first = this.#begins;
    const sealed: SealedSegment = { number: segment, first, last: position, length, checksum: hexOf(crc) };
    this.#segments.push(sealed);
    const isKnown = this.#active.first === first && this.#active.last === position;
    if (isKnown && position >= first) this.#recent.add(segment, this.#active);
    this.#sealed.add(sealed);
  }

  async #scanTo(end: Tip): Promise<void> {
    const { disk, directory } = this.#files;
    const { segment, length: from, crc } = this.#tip;
    const path = segmentPath(directory, segment);
    const loopYield = new EventLoopYield(this.#files.ground.ports.clock);
    try {
      for await (const lines of scanPublished(disk, directory, { segment, from, to: end.length, crc })) {
        this.#addAll(path, lines);
        if (loopYield.isDue) await loopYield.take();
      }
      if (!isEqualTip(this.#tip, end)) throw damaged(path, from);
    } catch (error) {
      // If the line that this process had read last is another one now, the log was replaced, not
      // damaged.
      if (isHoldfastError(error, "CORRUPT") && !(await this.#stands({ length: from, crc })))
        throw this.#files.continuity.broken();
      throw error;
    }
    this.#tip = end;
  }

  async #stands(tip: Pick<Tip, "length" | "crc">): Promise<boolean> {
    const file = await openSegment(this.#files.disk, this.#files.directory, this.#tip.segment);
    try {
      // A segment that is too short for it is damaged.
      return (await file.stat()).size < tip.length || (await standsIn(file, tip));
    } finally {
      await file.close();
    }
  }

  /** Advances the tip per line, also if it throws midway: a retry would index a line twice. */
  #addAll(path: string, lines: readonly RawLine[]): void {
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

  /**
   * Of sealed segments only: later lines are all read. Each segment with a retag leads to the one
   * before it.
   */
  async #findRetags(): Promise<void> {
    const { disk, directory } = this.#files;
    const numbers: number[] = [];
    for (let number = this.#tip.retagged; number !== 0;) {
      numbers.push(number);
      number = (await readHeader(disk, directory, number)).after.retagged;
    }
    // The oldest first: every process sees added tags in one order.
    for (const segment of this.#segments.filter(({ number }) => numbers.includes(number)))
      for await (const { retag } of this.#linesOf(segment)) if (retag !== undefined) this.retags.add(retag);
  }

  async *#linesOf({ number, length }: SealedSegment): AsyncGenerator<ReadLine, void> {
    const { disk, directory } = this.#files;
    const { bytes: from, crc } = await readHeader(disk, directory, number);
    for await (const lines of scanPublished(disk, directory, { segment: number, from, to: length, crc }))
      for (const line of lines) yield readLine(number, segmentPath(directory, number), line);
  }
}

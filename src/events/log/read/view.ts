// This process's view of the log. It follows the published tip line by line, and finds positions by type, tag and id.
import { EventLoopYield } from "../../../durable/wait/event-loop-yield.ts";
import { Fifo } from "../../../durable/wait/fifo.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { IndexedLine, LineAddress, PositionRange, SealedSegment } from "../../index/keys/indexed-line.ts";
import { ActiveIndex } from "../../index/memory/active-index.ts";
import { SealedIndexes } from "../../index/sealed-indexes.ts";
import type { Items } from "../../model/query.ts";
import type { TimeWindow } from "../../model/time-window.ts";
import { openSegment, readHeader, segmentPath } from "../format/segment.ts";
import { emptyTip, hexOf, isBefore, isEqualTip, isSameTip, type Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { headersBetween } from "./header-walk.ts";
import { readLine, readSealed, scanSealed } from "./line-keys.ts";
import { RecentIndexes } from "./recent-indexes.ts";
import { Retags } from "./retags.ts";
import { damaged, scanPublished, endsAt, type RawLine } from "./scan.ts";

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
  /** False until the first advance. That one reads only the retags of sealed segments; later ones read all lines. */
  #hasRetags = false;

  /** `pause`: called often while indexes are built; yields to other work. */
  constructor(files: LogFiles, pause: () => Promise<void>) {
    this.#files = files;
    const { staging, directory, logId } = files;
    this.#sealed = new SealedIndexes({
      staging,
      directory: `${directory}/index`,
      logId,
      scan: (segment) => scanSealed(files.disk, directory, segment),
      findActive: (position) => this.#recent.find(position),
      threads: files.ground.ports.threads,
      pause,
    });
  }

  /** Sealed segments, in order. */
  get segments(): readonly SealedSegment[] {
    return this.#segments;
  }

  /** How far this view has read. */
  get tip(): Tip {
    return this.#tip;
  }

  /**
   * Advances to `tip`, which must be published. Does nothing if the view is already there or further. Throws CORRUPT,
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

  /** Adds lines that this process has just published, from `from` to `to`, without reading them. */
  addOwn(from: Tip, to: Tip, lines: readonly IndexedLine[]): void {
    // Another caller may have advanced the view meanwhile, or it may not have reached `from`. Then the lines are read
    // like any others.
    if (!isSameTip(this.#tip, from) || !this.#turns.tryTake()) return;
    try {
      for (const line of lines) this.#active.add(line);
      this.#tip = to;
    } finally {
      this.#turns.give();
    }
  }

  /** True if no event after `after` matches. If false, the caller must check the candidates. Uses only memory. */
  isClear(items: Items, after: number): boolean {
    if (this.#active.hasCandidate(items, after)) return false;
    if (after < this.#begins - 1 && !this.#sealed.excludes(items, after)) return false;
    return this.retags.candidates(items, { after, upTo: this.#tip.position }).length === 0;
  }

  /** Yields positions that may match, in order. They are found by hash: the caller compares each event. */
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

  /**
   * Returns the parts of `range` that may have an event within `window`, in order. Skips segments whose times are
   * outside.
   */
  async rangesWithin(window: TimeWindow, { after, upTo }: PositionRange): Promise<PositionRange[]> {
    const active = this.#active;
    const wanted: PositionRange[] = [];
    const add = (first: number, last: number): void => {
      const part = { after: Math.max(after, first - 1), upTo: Math.min(upTo, last) };
      const before = wanted.at(-1);
      if (before?.upTo === part.after) wanted[wanted.length - 1] = { after: before.after, upTo: part.upTo };
      else wanted.push(part);
    };
    for (const segment of [...this.#segments]) {
      if (segment.last <= after || segment.first > upTo || segment.first >= active.first) continue;
      if (window.mayMeet(await this.#sealed.findTimes(segment))) add(segment.first, segment.last);
    }
    if (active.last > after && active.first <= upTo && window.mayMeet(active.times)) add(active.first, upTo);
    return wanted;
  }

  async *idCandidates(id: string): AsyncGenerator<number, void> {
    yield* this.#active.idCandidates(id);
    yield* this.#sealed.idCandidates(id);
  }

  async getLine(position: number): Promise<LineAddress> {
    return position >= this.#begins ? this.#active.getLine(position) : await this.#sealed.getLine(position);
  }

  /**
   * Builds missing index files and merges them, which may take minutes. They are only a cache: if an index is missing
   * later, the reader that needs it builds it.
   */
  async buildIndexes(): Promise<void> {
    const newest = this.#segments.at(-1)?.number ?? 0;
    // The process that sealed a segment builds its index. Others build it if it is still missing
    // when the next segment is sealed.
    const butNewest = this.#recent.has(newest) && !this.#files.hasMade(this.#tip.segment);
    const built = this.#recent.segments.filter((number) => !butNewest || number !== newest);
    await this.#sealed.indexSegments({ butNewest });
    this.#recent.drop(built);
    await this.#sealed.merge({ butNewest });
  }

  /** A later build starts the merges again. */
  endMerges(): void {
    this.#sealed.endMerges();
  }

  async close(): Promise<void> {
    await this.#sealed.close();
  }

  async #advance(tip: Tip): Promise<void> {
    const isFresh = !this.#hasRetags;
    for (const { segment, after, bytes, crc } of await headersBetween(this.#files, this.#tip, tip)) {
      // Read to the final end of the previous segment, unless it was sealed before this process opened the log: such a
      // segment has its index.
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
    // The tips of one log only move forward, so the later one includes the earlier.
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
      // If the line that this process read last has changed, the log was replaced, not damaged.
      if (isHoldfastError(error, "CORRUPT") && !(await this.#stands({ length: from, crc })))
        throw this.#files.continuity.broken();
      throw error;
    }
    this.#tip = end;
  }

  async #stands(tip: Pick<Tip, "length" | "crc">): Promise<boolean> {
    const file = await openSegment(this.#files.disk, this.#files.directory, this.#tip.segment);
    try {
      // If the segment is too short, it is damaged, not replaced.
      return (await file.stat()).size < tip.length || (await endsAt(file, tip));
    } finally {
      await file.close();
    }
  }

  /**
   * Moves the tip after each line, so that it is right even if this throws midway: a retry would otherwise index a
   * line twice.
   */
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
   * Reads retags of sealed segments only, since lines after those are all read anyway. Each segment with a retag
   * names the previous one.
   */
  async #findRetags(): Promise<void> {
    const { disk, directory } = this.#files;
    const numbers: number[] = [];
    for (let number = this.#tip.retagged; number !== 0;) {
      numbers.push(number);
      number = (await readHeader(disk, directory, number)).after.retagged;
    }
    // Oldest first: every process sees added tags in the same order.
    for (const segment of this.#segments.filter(({ number }) => numbers.includes(number)))
      for await (const { retag } of readSealed(disk, directory, segment))
        if (retag !== undefined) this.retags.add(retag);
  }
}

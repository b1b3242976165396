// Recovery of a log on one machine, under the gate: where does the log end, and what becomes of
// lines behind that end?
//
// Bytes behind the head are in doubt: the writer died before it could publish them, its sync
// failed, or the file system went away and came back with an older head. Lines in doubt are never
// believed as they stand, because after a failed sync the page cache alone may have them.
// - Under the lock file that the head names, no other writer can be at work in that segment. Whole
//   lines are written again at the same offset and synced, so that a consumer that has seen them
//   finds them unchanged.
// - Under another lock file they are copied into a new segment: the writer of the old one may still
//   be at work there.
//
// Nothing is truncated, and nothing that may count is overwritten with other bytes.
import { damaged, lookAtEnd } from "../read/scan.ts";
import { listSegments, segmentPath } from "../format/segment.ts";
import type { Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { mustContinue } from "../read/continuation.ts";
import type { LogTail } from "./log-tail.ts";
import { linesBehind } from "./parsed-end.ts";
import { space } from "./preallocation.ts";
import { mayBeLate, type PublishedEnd } from "./published-end.ts";

export class Recovery {
  protected readonly files: LogFiles;
  protected readonly tail: LogTail;
  readonly #end: PublishedEnd;

  constructor(files: LogFiles, tail: LogTail, end: PublishedEnd) {
    this.files = files;
    this.tail = tail;
    this.#end = end;
  }

  /** The end of the log, which the head names when this returns. CORRUPT. */
  async findEnd(): Promise<Tip> {
    return await this.#followSegments(await this.#findHeadEnd());
  }

  /** The end, for a process that does not go on to write. Whole lines behind it count then. */
  async settle(): Promise<void> {
    const tip = await this.findEnd();
    if (await this.#hasLinesBehind(tip)) await this.rescue(tip);
  }

  /** Whether a line or a segment stands behind the tip: something that can count. */
  async hasMore(tip: Tip): Promise<boolean> {
    return (await this.#newestSegment()) > tip.segment || (await this.#hasLinesBehind(tip));
  }

  /** Whether anything but room stands behind the tip. CORRUPT when the tip itself is not there. */
  async isInDoubt(tip: Tip): Promise<boolean> {
    const { segment, length } = tip;
    const size = await this.tail.segment.sizeOf(segment);
    const { stands, next = space } = await lookAtEnd(await this.tail.segment.open(segment), tip);
    if (!stands) throw damaged(segmentPath(this.files.directory, segment), Math.min(size, length));
    // A writer begins here, and while the machine runs no write is there without its first byte.
    return size > length && (size > this.tail.room || next !== space);
  }

  /** Saves whole lines behind the tip, and begins a new segment behind them. */
  async rescue(tip: Tip): Promise<Tip> {
    const { lines, end } = await linesBehind(this.files, tip);
    if (!this.tail.isAlone) return await this.tail.startSegment(tip, lines);
    if (lines.length > 0) await this.tail.writeAgain(tip, lines, end);
    return await this.tail.startSegment(end, []);
  }

  async #findHeadEnd(): Promise<Tip> {
    const head = await this.#end.findHead();
    if (head !== undefined && this.#end.isBelieved(head)) {
      this.tail.takeUp(head);
      return await this.#end.shown(head);
    }
    this.tail.takeUp(head && { lock: head.lock, room: 0 });
    const tip = await this.#end.tipAfterRestart(head, this.tail.lockId);
    // Before anything is written: a reader must not parse what is written from now on.
    if (tip.segment !== 0) await this.tail.restart(tip);
    return tip;
  }

  /**
   * The end of the segments that continue the tip. The writer that began the next one died before
   * its head named it; it held the gate, so no other line was written meanwhile. Or the head is
   * older than the segments: it was put back, or it is of a copy made while others wrote. CORRUPT
   * when the newest segment does not continue the log.
   */
  async #followSegments(tip: Tip): Promise<Tip> {
    const { disk, directory } = this.files;
    if (!(await disk.canOpen(segmentPath(directory, tip.segment + 1)))) return tip;
    const newest = await this.#newestSegment();
    const mayBranchOff = mayBeLate(this.tail.lockOfHead, this.tail.lockId);
    await mustContinue(this.files, tip, newest, { mayBranchOff });
    // What was found is of writers under this lock, not of one that came in since.
    await this.tail.assertHeld();
    return await this.tail.adopt(newest);
  }

  async #hasLinesBehind(tip: Tip): Promise<boolean> {
    return tip.segment !== 0 && (await linesBehind(this.files, tip)).lines.length > 0;
  }

  async #newestSegment(): Promise<number> {
    return (await listSegments(this.files.disk, this.files.directory)).at(-1) ?? 0;
  }
}

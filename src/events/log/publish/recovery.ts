// Recovery of a log on one machine, under the gate: finds the end of the log, and decides about
// lines after that end.
//
// Bytes after the head are in doubt: the writer died before it could publish them, its sync failed,
// or the file system was remounted with an older head. Lines in doubt are never trusted as they
// are, because after a failed sync they may exist only in the page cache.
// - Under the lock file that the head names, no other writer can be active in that segment. Whole
//   lines are written again at the same offset and synced, so that a consumer that has seen them
//   finds them unchanged.
// - Under another lock file they are copied into a new segment: the writer of the old one may still
//   be active there.
//
// Nothing is truncated, and nothing that may count is overwritten with other bytes.
import { signal } from "../../../telemetry/signals.ts";
import { listSegments, segmentPath } from "../format/segment.ts";
import type { Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import { mustContinue } from "../read/continuation.ts";
import type { LogTail } from "./log-tail.ts";
import { linesAfter, type PublishedEnd } from "./published-end.ts";

export class Recovery {
  protected readonly files: LogFiles;
  protected readonly tail: LogTail;
  readonly #end: PublishedEnd;

  constructor(files: LogFiles, tail: LogTail, end: PublishedEnd) {
    this.files = files;
    this.tail = tail;
    this.#end = end;
  }

  /** Returns the end of the log, which the head then names. Throws CORRUPT. */
  async findEnd(): Promise<Tip> {
    return await this.#followSegments(await this.#findHeadEnd());
  }

  /** Determines the end for a process that will not write. Whole lines after the head then count. */
  async settle(): Promise<void> {
    const tip = await this.findEnd();
    if (await this.#hasLinesBehind(tip)) await this.rescue(tip);
  }

  /** True if a line or a segment follows the tip, which may have to be published. */
  async hasMore(tip: Tip): Promise<boolean> {
    return (await this.#newestSegment()) > tip.segment || (await this.#hasLinesBehind(tip));
  }

  /** Saves whole lines after the tip, and continues the log in a new segment. */
  async rescue(tip: Tip): Promise<Tip> {
    const { lines, end } = await linesAfter(this.files, tip);
    signal("holdfast:log.recovered", () => ({ location: this.files.directory, lines: lines.length }));
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
    // Restart before anything is written: from then on a reader must use the head and not parse lines.
    if (tip.segment !== 0) await this.tail.restart(tip);
    return tip;
  }

  /**
   * Returns the end of the segments that continue the tip. The writer that began the next one died
   * before its head named it; it held the gate, so no other line was written meanwhile. Or the head
   * is older than the segments: it was restored, or belongs to a copy made while others wrote.
   * Throws CORRUPT if the newest segment does not continue the log.
   */
  async #followSegments(tip: Tip): Promise<Tip> {
    const { disk, directory } = this.files;
    if (!(await disk.canOpen(segmentPath(directory, tip.segment + 1)))) return tip;
    const newest = await this.#newestSegment();
    await mustContinue(this.files, tip, newest, { mayBranchOff: this.tail.mayBeStale });
    // The segments were found under this lock file. They must not be adopted once another writer entered under a new
    // one.
    await this.tail.assertHeld();
    return await this.tail.adopt(newest);
  }

  async #hasLinesBehind(tip: Tip): Promise<boolean> {
    return tip.segment !== 0 && (await linesAfter(this.files, tip)).lines.length > 0;
  }

  async #newestSegment(): Promise<number> {
    return (await listSegments(this.files.disk, this.files.directory)).at(-1) ?? 0;
  }
}
